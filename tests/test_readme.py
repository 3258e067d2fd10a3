"""What README, docs and CONTRIBUTING say can be done is done; their tables are measured."""

import csv
import json
import pkgutil
import re
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from specdec_lib.measure.domain_table import markdown
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.idea_tables import idea_table, ideas_page, stored_ideas
from specdec_lib.measure.ideas import WHERE
from specdec_lib.measure.race_table import (
    MARKS,
    RACED,
    shown_races,
    speeds,
    stored_race,
)
from specdec_lib.measure.rival_tables import rivals_page, side_by_side, stored_rivals
from specdec_lib.measure.scorecard.claims import VERDICTS
from specdec_lib.measure.settings.bench import OURS
from specdec_lib.measure.settings.ideas import CHAIN, COPIED, SPECULATIVE, VERTICAL
from specdec_lib.measure.settings.table import table_drafts
from specdec_lib.suite.command import main, verbs

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "data" / "measured"
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").iterdir()))
}
README = PAGES["README.md"]
GUIDE, FRONT = PAGES["guide.md"], " ".join(README.split())
WITH_CODE = {name: page for name, page in PAGES.items() if "```python" in page}


def between(mark: str, page: str = README) -> str:
    return page.split(f"<!-- {mark}: begin -->\n")[1].split(f"\n<!-- {mark}: end -->")[0]


def anchors(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page, re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def without_code(page: str) -> str:
    return re.sub(r"```.*?```", "", page, flags=re.S)


def without_tables(page: str) -> str:
    return re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->\n", "", page, flags=re.S)


def numbers(text: str) -> list[str]:
    """The numbers that a text says, in order; those in names, code and addresses are none."""
    words = re.sub(r"\]\([^)]*\)|`[^`]*`", " ", text)
    return re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)", words)


def says(page: str, *wanted: str, about: str = "") -> bool:
    """Whether some paragraph, in which a topic's word stands, says these numbers one after the
    other: its sentences may be worded anew, its numbers are the measured ones.
    """
    paragraphs = [" ".join(one.split()) for one in without_tables(page).split("\n\n")]
    size = len(wanted)
    return any(
        [*wanted] == said[start : start + size]
        for said in (numbers(one) for one in paragraphs if about in one)
        for start in range(len(said) - size + 1)
    )


def test_numbers_are_found_in_other_words_and_others_are_not():
    page = "A *tree* of [8 nodes](x.md#2) takes 1,200 ms (1.5–2.0), `k=3`, on AVX2.\n\nAnother: 4."
    assert numbers(page) == ["8", "1,200", "1.5", "2.0", "4"]
    assert says(page, "1.5", "2.0", about="tree") and says(page, "8", "1,200", "1.5")
    assert not says(page, "1.5", "2.0", about="Another") and not says(page, "8", "1.5")
    assert not says(page, "2.0", "4"), "of two paragraphs"


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name):
    folder = ROOT / "docs" if (ROOT / "docs" / name).exists() else ROOT
    for link in re.findall(r"\]\(([^)]+)\)", without_code(PAGES[name])):
        path, _, anchor = link.partition("#")
        if not link.startswith("https://"):
            assert (folder / path).exists(), link
            assert not anchor or anchor in anchors(PAGES[Path(path).name if path else name]), link


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


def test_the_table_is_the_stored_measurement(ladder):
    table = between("table")
    assert table == markdown(pd.read_csv(MEASURED / "tokens_per_round.csv"))
    assert all(f"| {name} |" in table for name in table_drafts(ladder))


@pytest.mark.parametrize("edition", MARKS)
def test_the_speeds_are_the_stored_measurement(edition):
    for mark, page, raced in shown_races(edition):
        assert between(mark, page.read_text(encoding="utf-8")) == speeds(raced)


def test_what_is_said_about_the_speeds_is_so():
    """In float32 all methods gain, interval and all; int8 is three times as fast, gains less on
    top, and beats llama.cpp.
    """
    tuned = "domain == 'all' and baseline == 'autoregressive' and (temperature == 0 or top_k > 0)"
    races = [stored_race(RACED, edition=edition) for edition in MARKS]
    own, rounded = (race.query(tuned).query("method in @OURS") for race in races)
    assert len(own) == len(rounded) == 2 * len(OURS) and (own.ratio_low > 1).all()
    gains = [one.set_index(["method", "temperature"]).ratio for one in (own, rounded)]
    assert (gains[1] < gains[0]).all()
    least, most = 100 * (gains[1][:, 1].agg(["min", "max"]) - 1)
    assert says(GUIDE, f"{least:.0f}", f"{most:.0f}", about="speculation gains less")
    against = races[1].query("domain == 'all' and baseline == 'llama.cpp'")
    assert (against[against.method == "autoregressive"].ratio > 1).all() and len(against) > 20
    alone = f"{tuned} and method == baseline and runtime != 'reference'"
    plain = [race.query(alone).ms_per_token.to_numpy() for race in races]
    assert (plain[0] / plain[1]).tolist() == pytest.approx([3, 3], abs=0.05)


def test_what_the_guide_says_about_cascades_is_so():
    table = pd.read_csv(MEASURED / "cascade_versus.csv").query("prices == 'measured'")
    chosen = table[table.chosen].set_index(["sampling", "domain"])
    gains = 100 * (chosen.ratio - 1)
    for found in (gains["greedy"].round(), gains["T = 1"].round()):
        assert len(found) == 4
        assert says(GUIDE, f"{found.min():.0f}", f"{found.max():.0f}", about="word problems")
    assert (chosen.low > 1).all()
    greedy = table.query("sampling == 'greedy'")
    assert (greedy[greedy.cascade == "draft + Max-Gram"].high < 1).all()
    assert chosen.cascade.str.contains("middle").all()


def test_what_the_guide_says_about_the_int8_edition_is_so():
    exact, rounded = pd.read_csv(MEASURED / "editions.csv").to_dict("records")
    assert (exact["divergence"], exact["same_choice"]) == (0, 1)
    losses = [f"{rounded['loss']:.3f}", f"{exact['loss']:.3f}"]
    apart = [f"{rounded['divergence']:.4f}", f"{100 * rounded['same_choice']:.0f}"]
    assert says(GUIDE, str(rounded["texts"]), *losses, *apart, about="int8 edition")


def test_the_verdicts_are_those_of_the_scorecard():
    table = pd.read_csv(ROOT / "figures" / "06_scorecard.csv").query("kind == 'gain'")
    counts = {one: (table.verdict == one).sum() for one in VERDICTS["gain"]}
    counts = {one: count for one, count in counts.items() if count}
    assert all(f"{count} {verdict}" in FRONT for verdict, count in counts.items())
    assert says(README, "95", *map(str, counts.values()), about="06_scorecard")


def test_what_the_ideas_are_worth_is_measured_in_todays_state():
    """The table is the stored one; a row of another machine, state or load would not be its."""
    stored = stored_ideas(RACED)
    assert between("ideas") == ideas_page(stored)
    assert set(stored.machine) == {RACED} and set(stored.threads) == {1}
    assert set(stored.state) == {decoding()} and (stored.cores < 1.25).all()
    falsified = stored.assign(seconds=stored.seconds * (1 + (stored.method == "tree")))
    assert ideas_page(falsified) != between("ideas")


def test_what_others_are_worth_is_measured_in_todays_state():
    """Beside ours on the same prompts; a row of another state or load would not be its."""
    rivals = stored_rivals()
    assert between("rivals") == rivals_page(side_by_side(stored_ideas(RACED), rivals))
    assert set(rivals.machine) == {RACED} and set(rivals.threads) == {1}
    assert set(rivals.state) == {decoding()} and (rivals.cores < 1.25).all()
    falsified = rivals.assign(seconds=rivals.seconds * (1 + (rivals.method == "hf_generate")))
    assert rivals_page(side_by_side(stored_ideas(RACED), falsified)) != between("rivals")


def test_what_is_said_of_others_is_so():
    """Of rows side by side, by kind of prompts and sampler."""
    table = side_by_side(stored_ideas(RACED), stored_rivals())
    theirs = table[table.whose.str.startswith("Hugging Face")]
    assert (theirs.ratio_high < 1).all() and set(theirs.whose) == {"Hugging Face bfloat16"}
    for (_, sampling), rows in table.groupby(["family", "sampling"]):
        exact, quick = (rows[rows.whose == one] for one in ("float32", "int8"))
        assert quick.ratio.min() > exact.ratio.max()
        fastest = quick.name[quick.ratio.idxmax()]
        assert fastest == ("tree behind copies" if sampling == "greedy" else "vertical cascade")
    counts = table.groupby("family").prompts.agg(["min", "max"])
    assert says(README, str(theirs.prompts.max()), *map(str, counts["max"]), about="int8 edition")


def test_what_is_said_of_both_papers_ideas_is_so():
    table = idea_table(stored_ideas(RACED)).query("part == 'all'")
    by = table.set_index(["pair", "edition"]).sort_index()
    tree, scout = by.loc["tree ÷ chain"], by.loc["chain, scout ÷ chain"]
    most, least = f"{tree.ratio.max():.2f}", f"{scout.ratio.max():.2f}"
    settled = [str((one.ratio_low > 1).sum()) for one in (tree, scout)]
    assert says(README, most, settled[0], "8", least, settled[1], "8", about="Staged")
    fed = by.loc["tree, scout ÷ tree"]
    assert not (fed.ratio_low > 1).any() and (fed.ratio_high < 1).sum() == 2
    assert (fed.ratio[fed.ratio_high < 1].round(2) == 0.99).all()
    vertical = by.loc["vertical cascade ÷ speculative decoding"]
    quick, exact = vertical.loc["int8"], vertical.loc["float32"]
    ends = f"{quick.ratio.min():.2f}", f"{quick.ratio.max():.2f}"
    [gain] = exact[exact.ratio_low > 1].itertuples()
    assert says(README, *ends, f"{gain.ratio:.2f}", about="Cascade")
    assert (gain.family, gain.sampling) == ("published prompts", "greedy")
    assert (quick.ratio_low > 1).all() and (exact.ratio_high < 1)[exact.temperature > 0].all()
    losses = {}
    for other in ("horizontal cascade", "vertical and horizontal"):
        gains = by.loc[f"{other} ÷ speculative decoding"]
        assert (gains.loc["int8"].ratio.to_numpy() < quick.ratio.to_numpy()).all()
        slower = gains[gains.ratio_high < 1]
        losses[other] = (slower.loc["float32"].shape[0], slower.shape[0])
    assert losses == {"horizontal cascade": (4, 4), "vertical and horizontal": (3, 4)}


def test_what_is_said_of_the_clocks_own_noise_and_of_what_is_fastest_is_so():
    stored = stored_ideas(RACED)
    assert (
        stored[stored.method.isin([CHAIN, SPECULATIVE])]
        .groupby(WHERE)
        .setting.nunique()
        .eq(1)
        .all()
    )
    sums = stored.groupby(["family", *WHERE, "method"])[["tokens", "seconds"]].sum()
    pace = (sums.tokens / sums.seconds).unstack("method")
    same = pace[CHAIN] / pace[SPECULATIVE]
    assert same["embedded prompts"].between(0.99, 1.01).all()
    assert (same["published prompts"].round(2) == 1).all()
    drawn = pace.xs(("int8", 1.0), level=("edition", "temperature"))
    assert (drawn.idxmax(axis=1) == VERTICAL).all()
    greedy = pace.xs(("int8", 0.0), level=("edition", "temperature"))
    assert (greedy[CHAIN + COPIED] > greedy[CHAIN]).all()


def test_what_is_said_of_reproduced_and_larger_gains_is_so():
    table = pd.read_csv(ROOT / "figures" / "06_scorecard.csv").query("kind == 'gain'")
    assert set(table.by[table.verdict == "reproduced"]) == {"counted"}
    larger = table[table.verdict == "larger"]
    assert larger.claim[larger.by == "clock"].str.endswith(", speculative").all()
    assert sorted(larger.by) == ["SWI", "SWI", "clock", "clock"]


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
    assert says(README, *each, about="*middle*")


def test_the_glossary_has_every_column():
    first = [line.split("|")[1] for line in PAGES["glossary.md"].splitlines() if line[:1] == "|"]
    cells = [part.strip(" `…_").lower() for cell in first for part in cell.split(",")]
    terms = {re.sub("[ -]", "_", cell) for cell in cells} - {""}
    terms |= {term.removesuffix("s") for term in terms} | {f"{term}s" for term in terms}

    def known(name: str) -> bool:
        cuts = [at for at, letter in enumerate(name) if letter == "_"]
        return name in terms or any(known(name[:at]) and known(name[at + 1 :]) for at in cuts)

    for path in [*(ROOT / "figures").glob("*.csv"), *MEASURED.glob("*.csv")]:
        with path.open(encoding="utf-8") as file:
            assert [name for name in next(csv.reader(file)) if not known(name)] == [], path.name
