import pytest
import torch

from specdec_lib.measure.machine import machine_name, short_name
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.processor import processor_name

WIDE = "avx2 avx512_f avx512_bf16"


@pytest.mark.parametrize(
    "capable, widest",
    [
        ("avx2 avx512_f avx512_vnni", "avx512_vnni"),
        ("avx2 avx512_f avx512_vnni avx512_bf16", "avx512_bf16"),
        ("avx512_f avx2", "avx512f"),
        ("sse2 avx", ""),
        ("", ""),
    ],
)
def test_machines_of_one_name_differ_by_their_instructions(capable, widest, tmp_path, monkeypatch):
    listing = tmp_path / "cpuinfo"
    found = {"avx512_bf16": False, "cpu_name": "another", **dict.fromkeys(capable.split(), True)}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert processor_name(listing).split(", ")[0], "without a listing it is the architecture"
    listing.write_text("processor : 0\nmodel name : AMD EPYC\n\n")
    assert processor_name(listing) == ", ".join(filter(None, ["AMD EPYC", widest]))


@pytest.mark.parametrize(
    "capable, family, name, dtype",
    [
        ("avx2", 25, "amd-epyc-zen-3-avx2-1-threads", torch.float32),
        (WIDE, 25, "amd-epyc-zen-4-avx512-bf16-1-threads", torch.bfloat16),
        (WIDE, 26, "amd-epyc-zen-5-avx512-bf16-1-threads", torch.bfloat16),
        (WIDE, 99, "amd-epyc-avx512-bf16-1-threads", torch.bfloat16),
    ],
)
def test_the_machines_of_stored_measurements_are_called_by_generation_and_instructions(
    capable, family, name, dtype, tmp_path, monkeypatch
):
    listing = tmp_path / "cpuinfo"
    about = f"vendor_id\t: AuthenticAMD\ncpu family\t: {family}\n"
    listing.write_text(f"{about}model name\t: AMD EPYC\n")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(capable.split(), True))
    monkeypatch.setattr(
        "specdec_lib.measure.machine.processor_name", lambda: processor_name(listing)
    )
    assert machine_name() == name and fastest_dtype() == dtype
    assert short_name(name) == (f"Zen {name[13]}" if "zen" in name else "AVX-512")
    for words in (f"{about}model name\t: AMD EPYC 9B14\n", "model name\t: AMD EPYC\n"):
        listing.write_text(words)
        assert "zen" not in machine_name(), "a number tells the generation; no vendor is named"
