"""What README, docs and CONTRIBUTING say can be done is done; their tables are measured."""

import csv
import json
import pkgutil
import re

import pandas as pd
import pytest
from safetensors.torch import load_file

from specdec_lib.measure.pages import read_marked
from specdec_lib.measure.race_table import EARLIER_RACED, MARKS, stored_race
from specdec_lib.measure.renewing import shown_tables
from specdec_lib.measure.scorecard.claims import VERDICTS
from specdec_lib.measure.settings.bench import OURS
from specdec_lib.measure.settings.table import table_drafts
from specdec_lib.suite.command import main, verbs
from tests.pages import MEASURED, PAGES, README, RESULTS, ROOT, numbers, says, without_tables

MOST_LINES = 130  # of README
WITH_CODE = {name: page for name, page in PAGES.items() if "```python" in page}


def anchors(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page, re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def without_code(page: str) -> str:
    return re.sub(r"```.*?```", "", page, flags=re.S)


def test_numbers_are_found_in_other_words_and_others_are_not():
    page = "A *tree* of [8 nodes](x.md#2) takes 1,200 ms (1.5–2.0), `k=3`, on AVX2.\n\nAnother: 4."
    assert numbers(page) == ["8", "1,200", "1.5", "2.0", "4"]
    assert says(page, "1.5", "2.0", about="tree") and says(page, "8", "1,200", "1.5")
    assert not says(page, "1.5", "2.0", about="Another") and not says(page, "8", "1.5")
    assert not says(page, "2.0", "4"), "of two paragraphs"


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name):
    for link in re.findall(r"\]\(([^)]+)\)", without_code(PAGES[name])):
        path, _, anchor = link.partition("#")
        if not link.startswith("https://"):
            page = (ROOT / name).parent / path if path else ROOT / name
            assert page.exists(), link
            page = page.resolve().relative_to(ROOT).as_posix()
            assert not anchor or anchor in anchors(PAGES[page]), link


def test_the_readme_is_short_and_begins_with_a_sentence_and_the_waterfall():
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES
    title, sentence, picture, *_ = README.split("\n\n")
    assert title == "# specdec" and re.fullmatch(r"[^.]*\.", sentence)
    assert picture.startswith("![") and picture.endswith("](figures/06_waterfall.png)")
    example = README.split("```python\n")[1].split("```")[0]
    assert len(list(filter(None, example.splitlines()))) == 8
    rows = {mark: read_marked(mark, README).count("\n|") - 1 for mark in ("front", "worth")}
    assert rows == {"front": 4, "worth": 7}


def test_every_chapter_of_the_guide_is_in_its_contents():
    contents = PAGES["docs/guide.md"]
    chapters = {name for name in PAGES if name.startswith("docs/guide/")}
    assert {f"docs/{one}" for one in re.findall(r"\]\((guide/\w+\.md)\)", contents)} == chapters


def test_lines_of_prose_are_short():
    for name, page in PAGES.items():
        lines = without_tables(page).splitlines()
        long = [line for line in lines if len(line) > 100 and line[0] not in "|!"]
        assert long == [], name


def test_every_make_target_exists():
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", "\n".join(PAGES.values()), re.M))
    assert {"figures", "test", "lab", "table", "bench", "lossless"} <= named <= rules


def test_every_command_exists_with_its_options(capsys):
    used: dict[str, set[str]] = {}
    for page in PAGES.values():
        for words in re.findall(r"\.venv/bin/specdec ([^\n`#]*)", page):
            verb = max((verb for verb in verbs() if words.startswith(verb)), key=len, default=words)
            used.setdefault(verb, set()).update(re.findall(r"--[a-z-]+", words))
    assert {"compare", "reproduce", "ties"} <= set(used) <= set(verbs()) | {"VERB --help"}
    for verb in set(used) & set(verbs()):
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*verb.split(), "--help"])
        assert used[verb] <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out)), verb


def test_every_name_in_the_library_exists_and_every_notebook_is_in_the_map():
    for name in set(re.findall(r"specdec_lib(?:\.\w+)+", "\n".join(PAGES.values()))):
        assert pkgutil.resolve_name(name), name
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{notebook.name})" in README


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_python_examples_run_one_after_the_other(name, unchecked):
    printed: list = []
    names = {"print": lambda *values, sep=" ": printed.extend(values), "__name__": "example"}
    for example in re.findall(r"```python\n(.*?)```", WITH_CODE[name], re.S):
        exec(compile(example, name, "exec"), names)
    right = sum(value is True for value in printed)
    assert all(printed) and right >= WITH_CODE[name].count("# True")


@pytest.mark.parametrize(
    "name, mark",
    [
        (name, mark)
        for name, page in PAGES.items()
        for mark in re.findall(r"<!-- (\w+): begin -->", page)
    ],
)
def test_a_table_is_the_stored_measurement(name, mark):
    page, made = shown_tables()[mark]
    assert page == ROOT / name and read_marked(mark, PAGES[name]) == made()


def test_the_table_of_tokens_per_round_has_its_drafts(ladder):
    table = read_marked("table", RESULTS)
    assert all(f"| {name} |" in table for name in table_drafts(ladder))


def test_what_is_said_about_the_speeds_is_so():
    """In float32 all methods gain, interval and all; int8 is three times as fast, gains less on
    top, and beats llama.cpp.
    """
    tuned = "domain == 'all' and baseline == 'autoregressive' and (temperature == 0 or top_k > 0)"
    races = [stored_race(EARLIER_RACED, edition=edition) for edition in MARKS]
    own, rounded = (race.query(tuned).query("method in @OURS") for race in races)
    assert len(own) == len(rounded) == 2 * len(OURS) and (own.ratio_low > 1).all()
    gains = [one.set_index(["method", "temperature"]).ratio for one in (own, rounded)]
    assert (gains[1] < gains[0]).all()
    least, most = 100 * (gains[1][:, 1].agg(["min", "max"]) - 1)
    page = PAGES["docs/earlier_races.md"]
    assert says(page, f"{least:.0f}", f"{most:.0f}", about="speculation gains less")
    against = races[1].query("domain == 'all' and baseline == 'llama.cpp'")
    assert (against[against.method == "autoregressive"].ratio > 1).all() and len(against) > 20
    alone = f"{tuned} and method == baseline and runtime != 'reference'"
    plain = [race.query(alone).ms_per_token.to_numpy() for race in races]
    assert (plain[0] / plain[1]).tolist() == pytest.approx([3, 3], abs=0.05)


def test_what_is_said_about_when_a_cascade_pays_is_so():
    table = pd.read_csv(MEASURED / "cascade_versus.csv").query("prices == 'measured'")
    chosen = table[table.chosen].set_index(["sampling", "domain"])
    gains = 100 * (chosen.ratio - 1)
    for found in (gains["greedy"].round(), gains["T = 1"].round()):
        assert len(found) == 4
        assert says(
            RESULTS, f"{found.min():.0f}", f"{found.max():.0f}", about="problems, intervals"
        )
    assert (chosen.low > 1).all()
    greedy = table.query("sampling == 'greedy'")
    assert (greedy[greedy.cascade == "draft + Max-Gram"].high < 1).all()
    assert chosen.cascade.str.contains("middle").all()


def test_what_the_guide_says_about_the_int8_edition_is_so():
    exact, rounded = pd.read_csv(MEASURED / "editions.csv").to_dict("records")
    assert (exact["divergence"], exact["same_choice"]) == (0, 1)
    losses = [f"{rounded['loss']:.3f}", f"{exact['loss']:.3f}"]
    apart = [f"{rounded['divergence']:.4f}", f"{100 * rounded['same_choice']:.0f}"]
    page = PAGES["docs/guide/runtimes.md"]
    assert says(page, str(rounded["texts"]), *losses, *apart, about="int8 edition")


def test_the_verdicts_are_those_of_the_scorecard():
    table = pd.read_csv(ROOT / "figures" / "06_scorecard.csv").query("kind == 'gain'")
    counts = {one: (table.verdict == one).sum() for one in VERDICTS["gain"]}
    counts = {one: count for one, count in counts.items() if count}
    said = " ".join(RESULTS.split())
    assert all(f"{count} {verdict}" in said for verdict, count in counts.items())
    assert says(RESULTS, "95", *map(str, counts.values()), about="06_scorecard")


def test_the_sizes_are_those_of_the_card():
    card = json.loads((ROOT / "data" / "ladder" / "card.json").read_text())["models"]
    names = "target", "middle", "draft", "reading"
    target, middle, draft, reading = (card[name]["parameters"] / 1e6 for name in names)
    layers = [str(card["target"]["layers"])]
    for name in names[1:]:
        weights = load_file(ROOT / "data" / "ladder" / f"{name}.safetensors")
        layers.append(str(sum("down_proj" in one and one.endswith("weight") for one in weights)))
    sizes = f"{target:.0f}", f"{middle:.0f}", f"{draft:.1f}", f"{reading:.1f}"
    each = [number for pair in zip(sizes, layers, strict=True) for number in pair]
    assert says(RESULTS, *each, about="*middle*")


def test_the_glossary_has_every_column():
    """Those of the glossary's words, and those that are listed beside the data."""
    pages = PAGES["docs/glossary.md"] + PAGES["data/measured/README.md"]
    first = [line.split("|")[1] for line in pages.splitlines() if line[:1] == "|"]
    cells = [part.strip(" `…_").lower() for cell in first for part in cell.split(",")]
    terms = {re.sub("[ -]", "_", cell) for cell in cells} - {""}
    terms |= {term.removesuffix("s") for term in terms} | {f"{term}s" for term in terms}

    def known(name: str) -> bool:
        cuts = [at for at, letter in enumerate(name) if letter == "_"]
        return name in terms or any(known(name[:at]) and known(name[at + 1 :]) for at in cuts)

    for path in [*(ROOT / "figures").glob("*.csv"), *MEASURED.glob("*.csv")]:
        with path.open(encoding="utf-8") as file:
            assert [name for name in next(csv.reader(file)) if not known(name)] == [], path.name
