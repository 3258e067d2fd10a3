"""What the page of results says of the races of ideas and against Hugging Face is measured."""

import re

import pandas as pd

from specdec_lib.measure.defaults import stored_defaults
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.idea_tables import idea_table, ideas_page, stored_ideas
from specdec_lib.measure.ideas import WHERE, disturbed
from specdec_lib.measure.pages import read_marked
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import with_interval
from specdec_lib.measure.renewing import AVX2, ZEN_4
from specdec_lib.measure.rival_tables import front_page, rivals_page, side_by_side, stored_rivals
from specdec_lib.measure.settings.ideas import CHAIN, COPIED, SPECULATIVE
from specdec_lib.measure.settings.usual import UNSWITCHED
from tests.pages import README, RESULTS, ROOT, says


def test_what_the_ideas_are_worth_is_measured_in_todays_state():
    """A row of another machine, state or load would not be the table's."""
    stored = stored_ideas(RACED)
    assert set(stored.machine) == {RACED} and set(stored.threads) == {1}
    assert set(stored.state) == {decoding()} and (stored.cores < 1.25).all()
    falsified = stored.assign(seconds=stored.seconds * (1 + (stored.method == "tree")))
    assert ideas_page(falsified) != read_marked("ideas", RESULTS)


def test_what_others_are_worth_is_measured_in_todays_state():
    """Beside ours on the same prompts; a row of another state or load would not be its."""
    rivals = stored_rivals()
    assert set(rivals.machine) == {RACED} and set(rivals.threads) == {1}
    assert set(rivals.state) == {decoding()} and (rivals.cores < 1.25).all()
    falsified = rivals.assign(seconds=rivals.seconds * (1 + (rivals.method == "hf_generate")))
    table = side_by_side(stored_ideas(RACED), falsified)
    assert rivals_page(table) != read_marked("rivals", RESULTS)
    assert front_page(table) != read_marked("front", README)


def test_what_is_said_of_others_is_so():
    """Of rows side by side, by kind of prompts and sampler."""
    table = side_by_side(stored_ideas(RACED), stored_rivals())
    theirs = table[table.whose.str.startswith("Hugging Face")]
    assert (theirs.ratio_high < 1).all() and set(theirs.whose) == {"Hugging Face bfloat16"}
    for (family, sampling), rows in table.groupby(["family", "sampling"]):
        exact, quick = (rows[rows.whose == one] for one in ("float32", "int8"))
        assert quick.ratio.min() > exact.ratio.max()
        fastest = quick.name[quick.ratio.idxmax()]
        drawn = family == "published prompts" and sampling != "greedy"
        assert fastest == ("speculative decoding" if drawn else "tree behind copies")
        if sampling != "greedy":  # level with the fastest
            assert quick.ratio[quick.name == "vertical cascade"].item() > 0.99 * quick.ratio.max()
    counts = table.groupby("family").prompts.agg(["min", "max"])
    assert says(RESULTS, str(theirs.prompts.max()), *map(str, counts["max"]), about="int8 edition")


def test_what_is_said_of_both_papers_ideas_is_so():
    table = idea_table(stored_ideas(RACED)).query("part == 'all'")
    by = table.set_index(["pair", "edition"]).sort_index()
    tree, scout = by.loc["tree ÷ speculative decoding"], by.loc["chain, scout ÷ chain"]
    most, least = f"{tree.ratio.max():.2f}", f"{scout.ratio.max():.2f}"
    settled = [str((one.ratio_low > 1).sum()) for one in (tree, scout)]
    assert says(RESULTS, most, settled[0], "8", about="Staged")
    assert says(RESULTS, least, settled[1], "8", about="Staged")
    [slower] = tree[tree.ratio_high < 1].reset_index().itertuples()
    place = ("published prompts", "int8", "T = 1, top-k 50")
    assert (slower.family, slower.edition, slower.sampling) == place
    assert says(RESULTS, f"{slower.ratio:.2f}", about="Staged")
    larger = by.loc["tree ÷ chain"].ratio - tree.ratio
    larger = larger.to_numpy()[(tree.temperature == 0) & (tree.index == "int8")]
    assert len(larger) == 2 and (larger > 0.04).all()
    stored = stored_ideas(RACED).query("edition == 'int8' and temperature == 1")
    assert set(stored[stored.method == CHAIN].setting) == {"middle, 1 tokens"}
    fed = by.loc["tree, scout ÷ tree"]
    assert fed.ratio.round(2).between(0.98, 1.02).all()
    vertical = by.loc["vertical cascade ÷ speculative decoding"]
    quick, exact = vertical.loc["int8"], vertical.loc["float32"]
    ends = f"{quick.ratio.min():.2f}", f"{quick.ratio.max():.2f}"
    [gain] = exact[exact.ratio_low > 1].itertuples()
    assert says(RESULTS, *ends, f"{gain.ratio:.2f}", about="Cascade")
    assert (gain.family, gain.sampling) == ("published prompts", "greedy")
    assert (quick.ratio_low > 1).sum() == 3 and (exact.ratio_high < 1)[exact.temperature > 0].all()
    gains = {}
    for other in ("horizontal cascade", "vertical and horizontal"):
        own = by.loc[f"{other} ÷ speculative decoding"]
        assert (own.loc["float32"].ratio_high < 1).all()
        faster = own.loc["int8"].query("ratio_low > 1")
        assert (faster.sampling == "greedy").all()
        gains[other] = set(faster.family)
        [slower] = own.loc["int8"].query("ratio_high < 1").itertuples()
        assert (slower.family, slower.sampling) == (place[0], place[2])
    assert gains["horizontal cascade"] == {"published prompts"}
    assert gains["vertical and horizontal"] == {"embedded prompts", "published prompts"}


def test_intervals_in_the_text_below_the_ideas_stand_in_their_table():
    said = RESULTS[RESULTS.index("- *Staged") : RESULTS.index("### When does a cascade pay?")]
    table = read_marked("ideas", RESULTS)

    def foreign(text: str) -> list[str]:
        intervals = re.findall(r"\d\.\d\d \(\d\.\d\d–\d\.\d\d\)", text)
        assert len(intervals) > 6
        return [one for one in intervals if one not in table]

    assert foreign(said) == []
    falsified = said.replace("1.13 (1.11–1.15)", "1.13 (1.12–1.15)")
    assert foreign(falsified) == ["1.13 (1.12–1.15)"]


def test_what_is_said_of_the_cascade_beside_copies_is_so():
    table = idea_table(stored_ideas(RACED)).query("part == 'all'")
    before = table[table.pair == "vertical cascade ÷ chain, copies"]
    gains = before[before.ratio_low > 1]
    assert set(gains.edition) == {"int8"} and gains.ratio.round(2).tolist() == [1.04, 1.09]
    assert (before.ratio_high < 1).sum() == 3 and len(before) == 8
    two = table[table.pair == "chain ÷ speculative decoding"]
    apart = (two.edition == "int8") & (two.temperature == 0)
    assert two[~apart].ratio.round(2).between(0.99, 1.01).all()
    assert two[apart].ratio.round(2).tolist() == [0.96, 0.92]
    beside = table[table.pair == "vertical cascade ÷ tree, copies"]
    [gain] = beside[beside.ratio_low > 1].itertuples()
    assert says(RESULTS, f"{gain.ratio:.2f}", about="Cascade")
    assert (gain.family, gain.edition, gain.temperature) == ("published prompts", "int8", 1)
    assert (beside.ratio_high < 1).sum() == 6 and len(beside) == 8
    raced = table[(table.idea == "all together") & (table.family == "published prompts")]
    raced = raced[raced.edition == "int8"].groupby("sampling").ratio.max()
    untuned = stored_defaults(RACED)["published prompts"]
    untuned = untuned[(untuned.edition == "int8") & (untuned.draft == UNSWITCHED)]
    untuned = untuned[untuned.domain == "all"].set_index("sampling").speed_up
    assert (untuned > raced[untuned.index]).all() and len(untuned) == 2


def test_what_is_said_of_a_core_without_avx_512_is_so():
    table = idea_table(stored_ideas(AVX2)).query("part == 'all'").set_index(["pair", "edition"])
    tree = table.loc["tree ÷ chain"]
    assert (tree.loc["int8"].ratio_high < 1).all()
    exact = tree.loc["float32"].set_index("sampling").ratio_low
    assert (exact > 1).tolist() == [False, True]
    stages = table.loc[["tree, scout ÷ tree", "chain, scout ÷ chain"]]
    assert not (stages.ratio_low > 1).any()
    assert (table.loc["horizontal cascade ÷ speculative decoding"].loc["int8"].ratio < 5 / 6).all()


def test_what_is_said_of_the_core_one_generation_older_is_so():
    stored = stored_ideas(ZEN_4)
    assert stored.groupby("family").prompt.nunique().tolist() == [40, 70]
    assert stored.cores.max() < 1.2
    keys = ["pair", "family", "edition", "sampling"]
    table = idea_table(stored).query("part == 'all'").set_index(keys).sort_index()
    trees = table.loc["tree ÷ speculative decoding"]
    ahead = trees[trees.ratio_low > 1]
    assert len(ahead) == 7 and ahead.ratio.round(2).between(1.04, 1.09).all()
    behind = trees[trees.ratio_high < 1]
    assert behind.index.tolist() == [("published prompts", "int8", "T = 1, top-k 50")]
    assert behind.ratio.round(2).tolist() == [0.94]
    vertical = table.loc["vertical cascade ÷ speculative decoding"]
    assert (vertical.ratio_low > 1).sum() == 3 and (vertical.ratio_high < 1).sum() == 3
    for copies in ("chain, copies", "tree, copies"):
        assert not (table.loc[f"vertical cascade ÷ {copies}"].ratio_low > 1).any()
    copies = table.loc["tree, copies ÷ tree"].reset_index()
    gains = copies[copies.ratio_low > 1]
    assert (gains.sampling == "greedy").tolist().count(True) == 3
    [drawn] = gains[gains.sampling != "greedy"].itertuples()
    assert (drawn.family, drawn.edition) == ("published prompts", "int8")
    stages = table[table.idea == "second stage"]
    assert len(stages) == 32 and not (stages.ratio_low > 1).any()
    [chain, speculative, vertical, both] = (
        table.loc[f"{name} ÷ autoregressive", "embedded prompts", "float32", "greedy"].ratio
        for name in (
            "chain",
            "speculative decoding",
            "vertical cascade",
            "vertical and horizontal",
        )
    )
    assert round(chain / speculative, 2) == 1.06 and max(vertical, both) < chain
    settings = stored.query("edition == 'exact' and temperature == 0").groupby("method").setting
    assert settings.first()["speculative decoding"] == "middle, 2 tokens"
    assert settings.first()["chain"] == "middle, 4 tokens"


def test_what_is_said_of_one_setting_and_of_two_on_the_older_core_is_so():
    table = idea_table(stored_ideas(ZEN_4)).query("part == 'all'").set_index("pair")
    same = table.loc["chain ÷ speculative decoding"]
    same = same[(same.edition == "int8") | (same.sampling != "greedy")]
    assert same.ratio.round(2).agg(["min", "max"]).tolist() == [0.98, 1.02] and len(same) == 6
    assert ((same.ratio_low > 1) | (same.ratio_high < 1)).sum() == 1
    over_four = table.loc["tree ÷ chain"].query(
        "family == 'embedded prompts' and edition == 'float32' and sampling == 'greedy'"
    )
    [ends] = over_four[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    assert f"over it a tree has {with_interval(*ends)}" in " ".join(RESULTS.split())


def test_what_is_said_of_the_clocks_own_noise_and_of_what_is_fastest_is_so():
    stored = stored_ideas(RACED)
    both = stored[stored.method.isin([CHAIN, SPECULATIVE])]
    equal = both.groupby([*WHERE, "family"]).setting.nunique() == 1
    assert {where[:2] for where in equal.index[~equal]} == {("int8", 0)}
    sums = stored.groupby([*WHERE, "family", "method"])[["tokens", "seconds"]].sum()
    pace = (sums.tokens / sums.seconds).unstack("method")
    same = pace[CHAIN] / pace[SPECULATIVE]
    assert same[equal].round(2).between(0.99, 1.01).all() and equal.sum() == 6
    greedy = pace.xs(("int8", 0.0), level=("edition", "temperature"))
    assert (greedy[CHAIN + COPIED] > greedy[CHAIN]).all()


def test_what_slowed_plain_decoding_in_int8_is_gone():
    """Published prompts have longer contexts, which cost time too: they prove nothing."""
    stored = stored_ideas(RACED).query("family == 'embedded prompts'").reset_index(drop=True)
    quick, exact = (stored[stored.edition == one] for one in ("int8", "exact"))
    assert len(disturbed(quick, 1.2)) <= 2
    others = stored_ideas(RACED).query("family != 'embedded prompts' and edition == 'int8'")
    counts = len(disturbed(exact, 1.2)), 160, len(disturbed(others.reset_index(), 1.2)), 140
    assert says(RESULTS, "1.2", *map(str, counts), about="--again")
    slowed = quick.assign(seconds=quick.seconds * (1 + (quick.domain == "chat")))
    assert len(disturbed(slowed, 1.2)) > 30  # the control


def test_what_is_said_of_reproduced_and_larger_gains_is_so():
    table = pd.read_csv(ROOT / "figures" / "06_scorecard.csv").query("kind == 'gain'")
    reproduced = table[table.verdict == "reproduced"]
    assert sorted(reproduced.by) == ["clock", "clock", "counted", "counted"]
    clocked = reproduced.claim[reproduced.by == "clock"]
    assert clocked.str.startswith("speculative against plain").all()
    assert clocked.str.endswith("embedded").all()
    larger = table[table.verdict == "larger"]
    assert larger.claim[larger.by == "clock"].str.endswith(", speculative").all()
    assert sorted(larger.by) == ["SWI", "SWI", "clock", "clock"]
