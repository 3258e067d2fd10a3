"""The tables over replays: SWI and intervals, pairs, ablations, price lists, whole domains."""

import math
from functools import partial

import pandas as pd
import pytest
from fakes import recording

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA
from specdec_lib.measure.cascade import variants
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.studies import (
    domain_tables,
    price_lists,
    replay_errors,
)
from specdec_lib.measure.cascade.tune import replayed_swi, swi_ratio, swi_table
from specdec_lib.measure.cascade.tuned import tuned_cascade
from specdec_lib.measure.cascade.variants import (
    ALONE,
    CASCADES,
    LEFT_OUT,
    ablations,
    by_swi_and_clock,
    tune_stacks,
)
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.trial import Trial

PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
THREE = ("middle", "draft", MAX_GRAM)
SETTING = CascadeSetting(THREE, ((2, 1, 4), (0, 1, 4), (0, 0, 4)), 3.0)


TEXTS = [recording(f"text {number}", number, 40) for number in range(6)]
FEW = [recording(f"text {number}", number, 20) for number in range(3)]


def test_a_row_sums_its_texts_and_charges_every_pass():
    row = swi_table(TEXTS, {"mine": SETTING}, PRICES).iloc[0]
    played = [replay_cascade(text, SETTING) for text in TEXTS]
    counts = {name: sum(one.passes[name] for one in played) for name in PRICES}
    assert counts["target"] == sum(len(one.emitted) for one in played)
    assert (row["name"], row.drafters) == ("mine", "middle + draft + Max-Gram")
    assert row.matrix == "2 1 4 / 0 1 4 / 0 0 4"
    assert (row.texts, row.tokens) == (6, 240)
    assert (row.rounds, row.middle_passes) == (counts["target"], counts["middle"])
    cost = sum(count * PRICES[name] for name, count in counts.items())
    assert row.swi == pytest.approx(240 * PRICES["target"] / cost)
    assert math.isnan(row.low)  # six texts
    row = swi_table(2 * TEXTS, {"mine": SETTING}, PRICES).iloc[0]
    assert row.low < row.swi < row.high


def test_a_comparison_is_paired_and_one_with_itself_is_exactly_even():
    other = CascadeSetting(("draft",), ((2,),))
    ratio, low, high = swi_ratio(2 * TEXTS, SETTING, other, PRICES)
    rows = swi_table(TEXTS, {"a": SETTING, "b": other}, PRICES).swi
    assert ratio == pytest.approx(rows[0] / rows[1]) and low < ratio < high
    assert swi_ratio(2 * TEXTS, SETTING, SETTING, PRICES) == pytest.approx((1, 1, 1))


def test_errors_of_replays_are_of_passes_and_of_what_swi_charges():
    counts = {"draft_passes": [100.0, 50.0], "replayed_draft_passes": [110.0, 50.0]}
    counts |= {"middle_passes": [10.0, None], "replayed_middle_passes": [10.0, None]}
    check = pd.DataFrame({"drafters": ["a", "b"], "matrix": "1", "rounds": 20, **counts})
    errors, charged = replay_errors(check, {"target": 1.0, "middle": 0.5, "draft": 0.1})
    assert errors.loc["draft"].tolist() == pytest.approx([10 / 150, 0, 0.1])
    assert errors.loc["middle"].tolist() == [0, 0, 0]
    assert charged == pytest.approx(10 * 0.1 / (40 + 5 + 15))


def test_an_ablation_takes_one_idea_away():
    found = ablations(SETTING)
    assert found["no horizontal"].matrix == ((2, 0, 0), (0, 1, 0), (0, 0, 4))
    assert found["no vertical"].matrix == ((2, 1, 4), (0, 0, 0), (0, 0, 0))
    assert found["no Max-Gram"] == CascadeSetting(("middle", "draft"), ((2, 1), (0, 1)), 3.0)
    assert found["no lenience"].lenience == 1.0
    assert all(kept(found[name]) and not kept(SETTING) for name, kept in LEFT_OUT.items())
    tuned_one = CascadeSetting(THREE, ((1, 1, 32), (0, 0, 16), (0, 0, 0)))
    assert ablations(tuned_one)["no horizontal"].matrix == ((1, 0, 0), (0, 0, 16), (0, 0, 0))


def test_every_stack_is_tuned_and_three_is_at_least_what_its_starts_are(unchecked):
    best = tune_stacks(FEW, PRICES)
    assert all(one.setting.drafters == drafters for drafters, one in best.items())
    assert set(best) == {*ALONE, *CASCADES}
    for name in ("middle", "draft"):
        start = variants._among_three(best[name, MAX_GRAM].setting)
        assert best[THREE].swi >= replayed_swi(FEW, start, PRICES)


def test_price_lists_are_the_cards_the_papers_and_the_measured(ladder):
    measured = {"target": 1.0, "middle": 0.4, "draft": 0.3}
    parameters, *lists = price_lists(ladder, measured).values()
    assert [[*one.values()] for one in lists] == [[1.0, 0.04, 0.02], [1.0, 0.4, 0.3]]
    assert parameters["target"] == ladder.card["models"]["target"]["parameters"]


def test_a_whole_domain_is_measured(unchecked):
    tables = domain_tables(FEW[:2], FEW, {"measured": PRICES})
    assert {name: len(table) for name, table in tables.items()} == {
        **{"swi": len(ALONE) + len(CASCADES), "versus": 3, "position": 90, "studies": 109}
    }
    assert tables["versus"].chosen.sum() == 1


def test_each_variant_keeps_to_its_kind_and_retuning_never_loses(unchecked):
    found = variants.variants(FEW, PRICES)
    for name, kept in LEFT_OUT.items():
        one, untuned = found[f"ablation: {name}"], ablations(found["ablation: full"])[name]
        assert kept(one)
        assert replayed_swi(FEW, one, PRICES) >= replayed_swi(FEW, untuned, PRICES)
    assert found["lenience: 5"].lenience == 5 and found["K00: 3"].matrix[0][0] == 3
    assert found["ablation: Max-Gram alone"].drafters == (MAX_GRAM,)


def test_swi_and_clock_are_of_the_same_rounds():
    methods = {"plain": (10, None, 1.0), "study: 2": (5, 10, 0.5), "other": (5, 10, 9.0)}
    columns = ["target_passes", "draft_passes", "seconds"]
    table = pd.DataFrame(
        {"draft": draft, "prompt": str(prompt), "domain": "chat", "tokens": 10 + prompt}
        | dict(zip(columns, counts, strict=True))
        for prompt in range(10)
        for draft, counts in methods.items()
    )
    given = {"prefix": "study: ", "baseline": "plain"}
    found = by_swi_and_clock(table, {"target": 1.0, "draft": 0.25}, **given).set_index("by")
    wanted = {"SWI, counted": 10 / (5 + 10 * 0.25), "speed, measured": 2.0}
    assert found.value.to_dict() == pytest.approx(wanted)
    assert set(found.variant) == {"2"} and found.low.notna().all()


def test_variants_race_beside_the_papers_and_equal_ones_once(ladder, monkeypatch):
    same, raced = CascadeSetting((MAX_GRAM,), ((2,),)), []

    def race(contenders, ladder, prompts, *, tokens, folder, quiet):
        assert not quiet.busy
        raced.extend(one.setting for one in contenders)
        made = partial(Trial, method="cascade", sampler=Sampler(0), prompt="chat/1")
        counts = {"tokens": 4, "timed_tokens": 4, "seconds": 1.0, "rounds": 2}
        yield [made(setting=name, passes={"target": 2}, **counts) for name in raced]

    monkeypatch.setattr(variants, "race_prompts", race)
    table = variants.time_cascades(ladder, "chat", [], {"a: 1": same, "a: 2": same}, Quiet())
    papers = {one.name: one.draft for one in variants.paper_settings(ladder)}
    assert raced == [*papers, "a: 1"] and papers["cascade, K00 = 2"].lengths == (2, 10)
    own = table[table.draft.str.startswith("a: ")]
    assert list(own.draft) == ["a: 1", "a: 2"] and set(own.matrix) == {"2"}
    assert list(table.columns) == variants.COLUMNS and not table.duplicated("draft").any()


def test_a_stored_setting_is_that_of_its_texts_and_prices_and_another_is_refused():
    ours = tuned_cascade(THREE, "code", "greedy", "reported")
    table = pd.read_csv(DATA / "measured" / "cascade_swi.csv")
    [row] = table[
        (table.drafters == " + ".join(THREE))
        & (table.domain == "code")
        & (table.sampling == "greedy")
        & (table.prices == "reported")
    ].itertuples()
    assert ours.labels == {name: getattr(row, name) for name in ours.labels}
    with pytest.raises(ValueError, match=r"sampling 'greedy', 'T = 1', got 'warm'"):
        tuned_cascade(THREE, "code", "warm")
