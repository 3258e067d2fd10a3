"""The tables over replays: SWI and intervals, pairs, ablations, price lists, whole domains."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.cascades import walltime
from specdec_lib.measure.cascades.tables import domain_tables, price_lists
from specdec_lib.measure.cascades.variants import (
    ALONE,
    CASCADES,
    LEFT_OUT,
    _among_three,
    ablations,
    by_swi_and_clock,
    swi_ratio,
    tune_stacks,
    variants,
)
from specdec_lib.measure.cascades.walltime import paper_drafts
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.replay import (
    MAX_GRAM,
    CascadeSetting,
    Recording,
    replay_cascade,
    swi_table,
)
from specdec_lib.measure.replay.recording import Choices
from specdec_lib.measure.replay.tuning import replayed_swi

PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
THREE = ("middle", "draft", MAX_GRAM)
SETTING = CascadeSetting(THREE, ((2, 1, 4), (0, 1, 4), (0, 0, 4)), 3.0)


def said(text: np.ndarray, often: float, dice: np.random.Generator) -> Choices:
    """A model that says the next token so often, and makes .6 of whatever it says."""
    tokens = np.where(dice.random(len(text)) < often, text, (text + 1) % 8)
    worth = np.full((len(text), 8), 0.02)
    worth[np.arange(len(text)), text] = 0.3
    worth[np.arange(len(text)), tokens] = 0.6
    return Choices(tuple(tokens.tolist()), tuple(dict(enumerate(row)) for row in worth.tolist()))


def recordings(count: int = 6, length: int = 40) -> list[Recording]:
    dice, found = np.random.default_rng(0), []
    for number in range(count):
        text = dice.integers(8, size=length)
        models = {"middle": said(text, 0.8, dice), "draft": said(text, 0.6, dice)}
        copied = said(text, 0.4, dice).tokens
        copies = tuple(copied[at : at + 6] for at in range(length))
        text = tuple(text.tolist())
        found.append(Recording(f"text {number}", Sampler(0), text, models, copies))
    return found


TEXTS = recordings()


def test_a_row_sums_its_texts_and_charges_every_pass():
    row = swi_table(TEXTS, {"mine": SETTING}, PRICES).iloc[0]
    played = [replay_cascade(text, SETTING) for text in TEXTS]
    counts = {"target": sum(len(one.emitted) for one in played)} | {
        name: sum(one.passes[name] for one in played) for name in ("middle", "draft")
    }
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


def test_an_ablation_takes_one_idea_away():
    found = ablations(SETTING)
    assert found["no horizontal"].matrix == ((2, 0, 0), (0, 1, 0), (0, 0, 4))
    assert found["no vertical"].matrix == ((2, 1, 4), (0, 0, 0), (0, 0, 0))
    assert found["no Max-Gram"] == CascadeSetting(("middle", "draft"), ((2, 1), (0, 1)), 3.0)
    assert found["no lenience"].lenience == 1.0 and found["full"] == SETTING
    tuned_one = CascadeSetting(THREE, ((1, 1, 32), (0, 0, 16), (0, 0, 0)))
    assert ablations(tuned_one)["no horizontal"].matrix == ((1, 0, 0), (0, 0, 16), (0, 0, 0))


def test_every_stack_is_tuned_and_three_is_at_least_what_its_starts_are(unchecked):
    texts = recordings(2, 20)
    best = tune_stacks(texts, PRICES)
    assert all(one.setting.drafters == drafters for drafters, one in best.items())
    assert set(best) == {*ALONE, *CASCADES}
    for name in ("middle", "draft"):
        start = _among_three(best[name, MAX_GRAM].setting)
        assert best[THREE].swi >= replayed_swi(texts, start, PRICES)


def test_price_lists_are_the_cards_the_papers_and_the_measured(ladder):
    seconds = pd.DataFrame({"model": ["target", "middle", "draft"], "price": [1.0, 0.4, 0.3]})
    parameters, *lists = price_lists(ladder, seconds).values()
    assert [[*one.values()] for one in lists] == [[1.0, 0.04, 0.02], [1.0, 0.4, 0.3]]
    assert parameters["target"] == ladder.card["models"]["target"]["parameters"]


def test_a_whole_domain_is_measured(unchecked):
    tables = domain_tables(recordings(2, 20), recordings(3, 20), {"measured": PRICES})
    assert {name: len(table) for name, table in tables.items()} == {
        **{"swi": len(ALONE) + len(CASCADES), "versus": 3, "position": 90, "studies": 109}
    }
    assert tables["versus"].chosen.sum() == 1


def test_each_variant_keeps_to_its_kind_and_retuning_never_loses(unchecked):
    texts = recordings(2, 20)
    found = variants(texts, PRICES)
    full = found["ablation: full"]
    for name, kept in LEFT_OUT.items():
        one, untuned = found[f"ablation: {name}"], ablations(full)[name]
        assert kept(one) and kept(untuned)
        assert replayed_swi(texts, one, PRICES) >= replayed_swi(texts, untuned, PRICES)
    assert found["lenience: 5"].lenience == 5 and found["K00: 3"].matrix[0][0] == 3
    assert found["ablation: Max-Gram alone"].drafters == (MAX_GRAM,)
    assert not LEFT_OUT["no horizontal"](SETTING) and not LEFT_OUT["no vertical"](SETTING)


def timings(prompts: int, **seconds: float) -> pd.DataFrame:
    rows = [
        {"draft": draft, "prompt": str(prompt), "domain": "chat", "tokens": 10 + prompt}
        | {"target_passes": 5, "draft_passes": 10, "seconds": took}
        for prompt in range(prompts)
        for draft, took in seconds.items()
    ]
    return pd.DataFrame(rows)


def test_swi_and_clock_are_of_the_same_rounds():
    table = timings(10, **{"plain": 1.0, "study: 2": 0.5, "other": 9.0})
    table.loc[table.draft == "plain", ["target_passes", "draft_passes"]] = [10, np.nan]
    given = {"prefix": "study: ", "baseline": "plain"}
    found = by_swi_and_clock(table, {"target": 1.0, "draft": 0.25}, **given).set_index("by")
    wanted = {"SWI, counted": 10 / (5 + 10 * 0.25), "speed, measured": 2.0}
    assert found.value.to_dict() == pytest.approx(wanted)
    assert set(found.variant) == {"2"} and found.low.notna().all()
    assert by_swi_and_clock(table, PRICES, prefix="none: ", baseline="plain").empty


def test_variants_race_beside_the_papers_and_equal_ones_once(ladder, monkeypatch):
    same, raced = CascadeSetting((MAX_GRAM,), ((2,),)), []

    def race(ladder, drafts, sampler, prompts, *, tokens, folder, warm_up):
        raced.extend(drafts)
        assert warm_up.name == walltime.load_prompts("chat", "development", 1)[0].name
        made = partial(Timing, "cascade", "", temperature=0.0, top_k=0, prompt="chat/1")
        counts = {"tokens": 4, "timed_tokens": 4, "seconds": 1.0, "rounds": 2}
        yield [made(setting=name, passes={"target": 2}, **counts) for name in drafts]

    monkeypatch.setattr(walltime, "race_drafts", race)
    table = walltime.time_cascades(ladder, "chat", 1, {"a: 1": same, "a: 2": same})
    papers = paper_drafts(ladder)
    assert raced == [*papers, "a: 1"] and papers["cascade, K00 = 2"].lengths == (2, 10)
    own = table[table.draft.str.startswith("a: ")]
    assert list(own.draft) == ["a: 1", "a: 2"] and set(own.matrix) == {"2"}
    assert list(table.columns) == walltime.COLUMNS and not table.duplicated("draft").any()
