from specdec_lib.core.processor import processor_name


def test_machines_of_one_name_differ_by_their_instructions(tmp_path):
    """A control without flags: then the two cannot be told apart, and nothing is made up."""
    place, found = tmp_path / "cpuinfo", []
    for flags in ("fpu sse2 avx2", "fpu avx2 avx512f avx512_vnni", "fpu sse2", None):
        lines = ["processor : 0", "model name : AMD EPYC"]
        place.write_text("\n".join(lines + ([f"flags : {flags}"] if flags else [])) + "\n\n")
        found.append(processor_name(place))
    assert found == ["AMD EPYC, avx2", "AMD EPYC, avx512_vnni", "AMD EPYC", "AMD EPYC"]


def test_a_system_without_a_listing_gives_its_architecture(tmp_path):
    assert processor_name(tmp_path / "missing")
