"""Sums of products in registers: the same bits by any instruction, in whatever stretches."""

import subprocess
import sys

import numpy as np
import pytest

from specdec_lib.models.fast import arithmetic
from specdec_lib.models.fast.products import AVX2, BLOCK, COLUMNS, DOT_PRODUCTS, RECORD
from specdec_lib.models.fast.tiles import compiled

PRODUCTS = """
import importlib
import sys

import numpy as np
from specdec_lib.models.fast import products

products.DOT_PRODUCTS &= sys.argv[1] == "vnni"
products.AVX2 &= sys.argv[1] == "avx2"
import torch

from specdec_lib.models.fast import arithmetic, panels, tiles

rng = np.random.default_rng(1)
four = rng.integers(0, 16, (16, 70)).astype(np.float32) / 8 - 1
four[:, ::16] = -1
four[:, 1::16] = 0.875
both = np.concatenate([four, rng.standard_normal((32, 70), np.float32)])
x = rng.standard_normal((5, 70), np.float32)
whole = [torch.from_numpy(both)]
made = {one: panels.stack_panels([(whole, None)], one) for one in ("int8", "exact")}
largest = made["int8"][0][0, :, :, :512].max((1, 2))
assert largest[0] == 15 and largest[1:].min() > 15, largest
for stretch in sys.argv[3:]:
    importlib.reload(tiles)
    tiles.ROWS, tiles.TOGETHER, tiles.STRETCH = 2, 1, int(stretch)
    tiles.config.CACHE_DIR = f"{sys.argv[2]}-{stretch}"
    importlib.reload(arithmetic)
    y = {one: np.zeros((5, 48), np.float32) for one in made}
    for name, rows in (("int8", arithmetic.quantise(x)), ("exact", x)):
        for one in range(3):
            arithmetic.linear_panels(made[name], 0, one, 1, rows, y[name], 0, False)
    assert np.allclose(y["exact"], x @ both.T, atol=1e-5)
    assert 0 < np.abs(y["int8"] - y["exact"]).max() < 0.3
    print(*(y[one].tobytes().hex() for one in ("int8", "exact")))
"""


def test_products_have_the_same_bits_by_any_instruction_and_in_any_stretches(tmp_path) -> None:
    """Of AVX-512 VNNI, where it is there, of AVX2, and the plain way: whole numbers of eight bits,
    those of four bits, which have a way of their own, and float32; in stretches of two blocks of
    the depth or 18 of its numbers, and all at once.
    """
    ways = {"avx2": ("1152", "0"), "plain": ("1152",)}
    if DOT_PRODUCTS:
        ways["vnni"] = "0", "1152"
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", PRODUCTS, way, tmp_path / way, *stretches],
            stdout=subprocess.PIPE,
        )
        for way, stretches in ways.items()
    ]
    lines = [one.communicate()[0].splitlines() for one in begun]
    assert not any(one.returncode for one in begun)
    assert [*map(len, lines)] == [*map(len, ways.values())]
    found = {line for its in lines for line in its}
    assert len(found) == 1
    assert len(found.pop().strip()) == 2 * (4 * 5 * 48) * 2 + 1  # hexadecimal, of both editions


@pytest.mark.skipif(not AVX2 or DOT_PRODUCTS, reason="they are multiplied so by AVX2 alone")
def test_a_stretch_of_bytes_is_small_if_every_block_is():
    rng = np.random.default_rng(1)
    panels = rng.integers(0, 16, (1, 3, RECORD), dtype=np.uint8)
    panels[:, :, BLOCK * COLUMNS :] = 255  # steps and lowest values do not matter
    asked = compiled()(lambda panels, start: arithmetic.bytes_are_small(panels, 0, start, 2))
    assert asked(panels, 0) and asked(panels, 1)
    panels[0, 2, BLOCK * COLUMNS - 1] = 16
    assert asked(panels, 0) and not asked(panels, 1)
