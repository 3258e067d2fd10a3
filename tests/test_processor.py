from specdec_lib.models.processor import processor_name


def test_machines_of_one_name_differ_by_their_instructions(tmp_path):
    place = tmp_path / "cpuinfo"
    assert processor_name(place), "without a listing it is the architecture"
    for flags, wanted in (
        ("flags : fpu avx2 avx512f avx512_vnni", "AMD EPYC, avx512_vnni"),
        ("flags : fpu sse2", "AMD EPYC"),
        ("", "AMD EPYC"),
    ):
        place.write_text(f"processor : 0\nmodel name : AMD EPYC\n{flags}\n\n")
        assert processor_name(place) == wanted
