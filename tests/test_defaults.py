"""The draft that nobody tuned: its size, what it is timed beside, and the table of the command."""

from dataclasses import replace
from itertools import cycle
from statistics import mean

import pandas as pd
import pytest
from fakes import Linear, Says, fixed_model
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.paying import HOPED
from specdec_lib.drafts.recycling import TokenRecycling
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure import defaults, racing
from specdec_lib.measure.defaults import slowest_kinds, summarise_defaults
from specdec_lib.measure.latency import needed
from specdec_lib.measure.latency.needed import (
    LARGER,
    ROUNDS,
    TRIED,
    best_sizes,
    needed_tokens,
    usual_size,
)
from specdec_lib.measure.latency.passes import time_passes
from specdec_lib.measure.settings.ladder_drafts import copies
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.usual import (
    COPIES,
    DEFAULT,
    LEAST,
    TREES,
    Size,
    tree_models,
    usual_draft,
    usual_settings,
)
from specdec_lib.measure.target_text import chosen_prompts
from specdec_lib.suite.distil.places import TEXT
from specdec_lib.suite.distil.shards import read_text
from specdec_lib.theory import PassTable
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")
ROWS = (1, 2, 13)


@pytest.fixture
def timed(monkeypatch):
    """Passes of a draft take 1, those of the target 10 and as much more per further row as said."""

    def with_rows(more: float) -> None:
        own = PassTable(ROWS, (1,), ((1.0, 1.0, 1.0),))
        verify = PassTable(ROWS, (1,), ((10.0, 10.0 + more, 10.0 + 12 * more),))
        monkeypatch.setattr(needed, "_timed", lambda *given: (own, verify))

    return with_rows


def test_a_round_needs_the_tokens_that_plain_decoding_yields_in_its_time(clock):
    class Slow:
        """Takes 3 seconds, and guesses what some draft would."""

        def __init__(self, draft: Draft) -> None:
            self.draft = draft

        def propose(self, context: Context, chance: Chance) -> TokenTree:
            clock.now += 3
            return self.draft.propose(context, chance)

    target = Linear("target", clock, fixed=10, row=0.5, max_positions=4000)

    def needs(draft: Draft) -> float:
        return needed_tokens(target, draft, repeats=2)

    assert needs(NoDraft()) == 1
    assert needs(Slow(NoDraft())) == pytest.approx(13.5 / 10.5)
    assert needs(Slow(Says((7, 8, 9)))) == pytest.approx((3 + 10 + 4 * 0.5) / 10.5)
    assert needs(copies(5, 2)) == pytest.approx((10 + 6 * 0.5) / 10.5)  # the text repeats itself
    target.row = -0.5
    assert needs(Says((7, 8, 9))) == 1  # never less


def test_no_timed_round_finds_its_guesses_read_before(ladder):
    def rows(draft: Draft) -> int:
        before = ladder.target.usage.rows
        needed_tokens(ladder.target, draft, repeats=2)
        return ladder.target.usage.rows - before

    rows(NoDraft())  # reads the text
    assert rows(copies(3, 2)) - rows(NoDraft()) == 3 * ROUNDS * 3


def test_rounds_are_timed_where_the_models_have_room_and_with_no_draft_that_learns():
    target, draft = (fixed_model((0.6, 0.3, 0.1), name) for name in ("target", "draft"))
    short = replace(draft, max_positions=12)
    assert needed_tokens(target, ChainDraft(short, 3), sampler=Sampler(1.0), repeats=1) >= 1
    with pytest.raises(ValueError, match="timing rounds takes no draft that learns"):
        needed_tokens(target, TokenRecycling())
    with pytest.raises(ValueError, match=r"repeats of needed_tokens .* got 0"):
        needed_tokens(target, NoDraft(), repeats=0)


def test_the_sizes_follow_from_what_rows_cost_and_how_often_guesses_are_right(ladder, timed):
    often, seldom = MatchTable((0.7, 0.15, 0.05)), MatchTable((0.3, 0.1, 0.05))

    def best(match: MatchTable) -> tuple[int, int, float]:
        return best_sizes(ladder.target, ladder.draft, match)[0]

    timed(0.1)
    budget, depth, hoped = best(often)
    assert budget > best(seldom)[0] and depth > best(seldom)[1] and hoped > best(seldom)[2]
    found = best_sizes(ladder.target, ladder.draft, often)
    assert len({one[:2] for one in found}) == len(found) > TRIED
    timed(4.0)
    assert best(often)[0] < budget
    assert best(seldom) == (1, 1, pytest.approx(1.3))


def test_the_default_takes_what_brings_most_tokens_for_the_time_of_its_rounds(
    ladder, timed, monkeypatch
):
    sizes = {
        "draft": [(4, 3, 2.0), (2, 2, 1.8), (1, 1, 1.5), (8, 4, 9.0)],
        "middle": [(4, 2, 2.4), (3, 3, 2.3), (1, 1, 1.6), (9, 4, 9.0)],
    }
    timed(0.5)
    found = cycle(sizes.values())  # the models are asked in this order
    monkeypatch.setattr(needed, "_sizes", lambda *given: next(found))
    seen = {}

    def prices(*trees: float, per_copy: float) -> Size:
        def told(target, drafts, sampler, repeats):
            seen[sampler] = drafts
            return [*trees, *(1 + per_copy * one.length for one in drafts[len(trees) :])]

        monkeypatch.setattr(needed, "_needed_by_turns", told)
        return usual_size(ladder, sampler)

    for sampler, lengths in ((Sampler(0), (8, 3)), (Sampler(1.0), (6, 3)), (Sampler(2.0), (6, 3))):
        quick = prices(1.8, 1.2, 1.1, 2.5, 2.5, 2.5, per_copy=0.01)
        larger = 1 if sampler.temperature else LARGER
        cut = 0 if sampler.temperature else 1  # by the scores at which a guess is worth its price
        assert quick[:3] == ("draft", 2 * larger, 2 * larger)
        assert (quick.floor, quick.deepen) == pytest.approx((cut * 1.5 * 0.05, cut * 1.5 * 0.15))
        assert (quick.needed, quick.hoped) == (1.2, 1.8)
        slow = prices(1.2, 1.2, 1.3, 1.5, 1.3, 1.5, per_copy=0.5)
        assert slow[:3] == ("middle", 3 * larger, 3 * larger)
        assert (slow.floor, slow.deepen) == pytest.approx((cut * 2.3 / 26, cut * 2.3 / 26 * 3))
        assert (slow.needed, slow.hoped) == (1.3, 2.3)
        assert (quick.length, slow.length) == lengths
        assert quick.copying == pytest.approx(1 + 0.01 * quick.length)
        assert slow.copying == pytest.approx(2.5)
        trees, copied = seen[sampler][: 2 * TRIED], seen[sampler][2 * TRIED :]
        assert [one.model.name for one in trees] == TRIED * ["draft"] + TRIED * ["middle"]
        assert [one.budget for one in trees] == [4, 2, 1, 4, 3, 1]
        assert [(one.length, one.least) for one in copied] == [(length, LEAST) for length in COPIES]


def test_trees_are_tried_with_the_models_that_the_ladder_has(ladder):
    assert tree_models(ladder) == ["draft", "middle"]
    assert tree_models(tiny_ladder(reads=True)) == ["reading", "middle"]
    assert tree_models(replace(ladder, middle=None)) == ["draft"]


def test_what_copies_bring_is_what_they_bring_in_the_text_kept_out():
    """In every eighth conversation, where the numbers are of all: a few greedy ones repeat
    themselves at length. A round that copies fewer than `LEAST` is a plain one.
    """
    for length, told in COPIES.items():
        draft = copies(length, LEAST)
        counted: dict[bool, list[int]] = {True: [], False: []}
        for one in read_text(TEXT / "kept-out")[::8]:
            for first, end in one.answers:
                context = Context.of(one.ids[:first])
                while len(context) < end:
                    left = one.ids[len(context) : end]
                    tree = draft.propose(context, Chance(0))
                    right = tree.guessed(left)
                    if tree.guesses >= LEAST:
                        counted[one.greedy].append(1 + right)
                    context = context.extended(left[: 1 + right])
        greedy, drawn = told
        assert greedy == pytest.approx(mean(counted[True]), rel=0.12)
        assert drawn == pytest.approx(mean(counted[False]), rel=0.01)


@pytest.mark.parametrize("positions, rows, context", [(512, 13, 256), (24, 13, 1), (16, 5, 1)])
def test_passes_are_timed_where_both_models_have_room(positions, rows, context, monkeypatch):
    asked = {}

    def spy(models, **options):
        asked.update(options)
        return time_passes(models, **options)

    monkeypatch.setattr(needed, "time_passes", spy)
    target, draft = (fixed_model((0.6, 0.3, 0.1), name) for name in ("target", "draft"))
    short = replace(draft, max_positions=positions)
    sizes = best_sizes(target, short, MatchTable(), repeats=1)
    assert (max(asked["rows"]), asked["contexts"]) == (rows, [context])
    assert all(depth <= budget for budget, depth, _ in sizes)


def test_the_default_drafts_with_the_model_that_was_chosen_beside_all_others():
    ladder = tiny_ladder(reads=True)
    for model in ("draft", "middle", "reading"):
        size = Size(model, 6, 3, 0.05, 0.3, 1.4, 2.2, 5, 1.8)
        switched = usual_draft(ladder, Sampler(0), size)
        assert (switched.parts[0].length, switched.parts[0].least) == (5, LEAST)
        assert switched.least == LEAST
        assert (switched.parts[1].model.name, switched.parts[1].budget) == (model, 6)
        assert switched.needed == (1.8, 1.4) and switched.hoped == (HOPED * 1.8, 2.2)
        timed = {one.name: one.draft for one in usual_settings(ladder, Sampler(0), size)}
        assert next(iter(timed)) == AUTOREGRESSIVE
        assert timed["copies, else a tree"].parts[1] == timed[TREES[model]] == switched.parts[1]
        assert {TREES[one]: timed[TREES[one]].model.name for one in TREES} == {
            name: one for one, name in TREES.items()
        }


def test_the_command_times_every_draft_on_every_prompt_and_goes_on(monkeypatch, tmp_path, capsys):
    ladder = tiny_ladder(runtime="fast", reads=True)
    monkeypatch.setattr(defaults, "racing_ladder", lambda edition: ladder)
    monkeypatch.setattr(defaults, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(
        defaults, "usual_size", lambda *given: Size("middle", 4, 2, 0.05, 0.3, 1.5, 2.0, 6, 1.5)
    )
    line = f"--limit 1 --max-new-tokens 6 --editions exact --csv {tmp_path / 'table.csv'}"
    run("measure", "defaults", *line.split())
    table = pd.read_csv(tmp_path / "table.csv")
    prompts = chosen_prompts(None, "held-out", 1)
    assert len(table) == 2 * len(prompts) * 7 and set(table.edition) == {"exact"}
    assert table.groupby(["sampling", "prompt"]).tokens.nunique().eq(1).all()
    assert (table.model == "middle").all()
    assert (table.needed == 1.5).all() and (table.length == 6).all()
    told = capsys.readouterr().out
    assert f"where {DEFAULT} gain least" in told
    monkeypatch.setattr(racing, "race", lambda *given, **options: pytest.fail("timed again"))
    run("measure", "defaults", *line.split())
    assert pd.read_csv(tmp_path / "table.csv").equals(table)


def gains() -> pd.DataFrame:
    rows = [
        ("exact", "greedy", domain, f"{domain}{at}", draft, 10, 5, seconds)
        for domain, gain in (("chat", 2.0), ("code", 4.0))
        for at in range(3)
        for draft, seconds in ((AUTOREGRESSIVE, 4.0 + at), (DEFAULT, (4.0 + at) / gain))
    ]
    columns = "edition sampling domain prompt draft tokens rounds seconds".split()
    return summarise_defaults(pd.DataFrame(rows, columns=columns))


def test_gains_are_ratios_of_sums_over_prompts_by_kind():
    found = gains()
    of_default = found[found.draft == DEFAULT].set_index("domain").speed_up
    assert of_default["chat"] == pytest.approx(2) and of_default["code"] == pytest.approx(4)
    assert of_default["all"] == pytest.approx(2 * 15 / (15 / 2 + 15 / 4))
    assert slowest_kinds(found, DEFAULT).domain.tolist() == ["chat"]


def test_a_page_shows_every_edition_and_sampler_of_both_kinds_of_prompts():
    heads, _, *lines = defaults.page_table({"one": gains(), "other": gains()}).splitlines()
    assert heads.count("|") == lines[0].count("|") and DEFAULT in heads
    assert [line.split(" | ")[0] for line in lines] == ["| 6 one", "| 6 other"]
    assert "| 2.67 | chat 2.00 |" in lines[0], "no interval from so few prompts"


@pytest.mark.parametrize("name", defaults.places_of(defaults.EARLIER))
def test_a_pages_table_is_of_the_stored_measurements_of_its_machine(name, monkeypatch, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- mark: begin -->\nold\n<!-- mark: end -->\n")
    rows = pd.read_csv(defaults.places_of(defaults.EARLIER)[name])
    monkeypatch.setattr(defaults, "PAGES", {"mark": (page, "here")})
    monkeypatch.setattr(defaults, "MEASURED", tmp_path)
    monkeypatch.setattr(defaults, "stored_defaults", lambda machine: {machine: gains()})
    monkeypatch.setattr(defaults, "measure_defaults", lambda *given, **options: rows)
    monkeypatch.chdir(tmp_path)
    place = defaults.places_of("here")[name]
    run("measure", "defaults", "--csv", place.name)
    assert "| 6 here |" in page.read_text() and len(pd.read_csv(place)) == len(rows)
    page.write_text(page.read_text().replace("here", "else"))
    run("measure", "defaults", "--csv", str(tmp_path / "else.csv"))
    assert "| 6 else |" in page.read_text()
