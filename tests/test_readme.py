"""What the README says can be done is done."""

import re
import subprocess
from pathlib import Path

import pytest

from specdec_lib.measure.sweep import Setting, sweep
from specdec_lib.measure.sweep.command import BEGIN, END, markdown, put
from specdec_lib.measure.sweep.comparison import drafts
from specdec_lib.measure.sweep.statistics import summary

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_link_leads_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (ROOT / link).exists(), f"{page.name}: {link}"


def test_every_make_target_exists():
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.M))
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert {"figures", "test", "lab", "table", "lossless", "ladder"} <= named <= rules


def test_every_notebook_is_in_the_map():
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{notebook.name})" in README


def test_the_python_examples_run_one_after_the_other():
    examples = re.findall(r"```python\n(.*?)```", README, re.S)
    printed: list = []
    names = {"print": lambda *values, sep=" ": printed.extend(values)}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    same = [value for value in printed if value is True]
    text, tokens_per_round, *_, echo_rate = printed
    engines = [value for value in printed if value in ("transformers", "vLLM", "SGLang")]
    assert (
        len(examples) == 8
        and text
        and all(float(rate.split()[0]) > 1 for rate in (tokens_per_round, echo_rate))
    )
    assert len(same) == 4 and False not in printed and len(engines) == 3


def test_the_table_was_written_by_its_command_and_stands_beside_it(ladder):
    table = README.split(BEGIN)[1].split(END)[0]
    assert "`make table`" in table
    assert all(f"| {name} |" in table for name in drafts(ladder))
    assert (ROOT / "data" / "measured" / "tokens_per_round.csv").is_file()


def test_the_tables_numbers_are_those_of_the_measurement():
    import pandas as pd

    table = README.split(BEGIN)[1].split(END)[0]
    measured = pd.read_csv(ROOT / "data" / "measured" / "tokens_per_round.csv")
    assert table.strip() == markdown(measured, "make table").strip()


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="needs the marks"):
        put("table", page)
    page.write_text(f"a\n{BEGIN}\nold\n{END}\nb\n")
    put("new", page)
    assert page.read_text() == f"a\n{BEGIN}\nnew\n{END}\nb\n"


def test_the_summary_of_a_small_sweep_becomes_a_table(ladder, prompts):
    from specdec_lib.core.chance import Sampler

    settings = [
        Setting(name, draft, Sampler(t))
        for t in (0.0, 1.0)
        for name, draft in list(drafts(ladder).items())[:2]
    ]
    text = markdown(
        summary(sweep(settings, prompts[:2], ladder, max_new_tokens=8, progress=False)),
        "make table",
    )
    assert [line.split(" | ")[0] for line in text.splitlines()[-2:]] == [
        "| n-gram, best tree of 16",
        "| Max-Gram, chain of 10",
    ]


def test_nothing_that_a_command_regenerates_is_tracked_but_what_may_be():
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")[:-1]
    if not tracked:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in tracked if (ROOT / name).is_file()}
    assert sum(sizes.values()) <= 60e6 and max(sizes.values()) <= 15.5e6
    assert sum(size for name, size in sizes.items() if name.startswith("data/ladder/")) <= 52e6
