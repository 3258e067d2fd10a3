import pytest
import torch

from specdec_lib.measure.machine import machine_name
from specdec_lib.models.batched import fastest_dtype
from specdec_lib.models.processor import processor_name


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
    "capable, name, dtype",
    [
        ("avx2", "amd-epyc-avx2-1-threads", torch.float32),
        ("avx2 avx512_f avx512_bf16", "amd-epyc-avx512-bf16-1-threads", torch.bfloat16),
    ],
)
def test_the_machines_of_stored_measurements_are_called_as_before(
    capable, name, dtype, tmp_path, monkeypatch
):
    listing = tmp_path / "cpuinfo"
    listing.write_text("model name\t: AMD EPYC\n")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(capable.split(), True))
    monkeypatch.setattr(
        "specdec_lib.measure.machine.processor_name", lambda: processor_name(listing)
    )
    assert machine_name() == name and fastest_dtype() == dtype
