"""The cascade explorer: its numbers are the replay's at any prices, the tuner turns its knobs."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from fakes import recording
from test_replay_studies import PRICES
from test_widgets_words import cells

from specdec_lib.core.chance import Sampler
from specdec_lib.measure import cascade
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, Choices
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.tune import Replays, replayed_swi, widen
from specdec_lib.show.widgets import cascade_explorer, explore_cascades

NAMES = ("middle", "draft", MAX_GRAM)
START = CascadeSetting(NAMES, ((5, 14, 10), (0, 1, 10), (0, 0, 10)))
OURS = CascadeSetting(NAMES, ((2, 1, 4), (0, 1, 4), (0, 0, 4)), 3.0)


def made_replays() -> Replays:
    texts = {
        "one": [recording(name, seed) for seed, name in enumerate("abc")],
        "other": [recording(name, seed) for seed, name in enumerate("de", 9)],
    }
    return Replays(texts, {"the paper's": START})


replays = pytest.fixture(made_replays, scope="module")


@pytest.fixture
def evaluate():
    """An evaluation that remembers its calls."""

    def called(setting, prices, texts):
        called.calls.append((setting, dict(prices), texts))
        row = {"swi": 1.5, "low": 1.4, "high": 1.6, "tokens_per_round": 2.0, "texts": 10}
        row |= {f"{name}_{what}": 1.0 for name in prices for what in ("passes", "price")}
        row |= {"acceptance_rate": 0.5, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
        rival = {"setting": "rival", "ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3}
        return pd.DataFrame([row | {"setting": "this setting"}, row | rival])

    called.calls = []
    return called


def refuse(*_, **__):
    raise ValueError("no <text>")


def explorer(evaluate, drafters=NAMES, **options):
    given = {"prices": PRICES, "start": START, "texts": ("one",), "presets": {}, "tune": refuse}
    return cascade_explorer(evaluate, drafters, **given | options)


def test_the_explorer_starts_at_its_setting_and_shows_it_in_both_conventions(evaluate):
    panel = explorer(evaluate)
    assert evaluate.calls[-1] == (START, PRICES, "one")
    rows = cells(panel.words.value)
    for row in (
        ["as set: tokens added", *NAMES],
        ["target", "5", "14", "10"],
        ["middle", "0", "1", "10"],
        ["as in the paper: tokens so far", *NAMES],
        ["target", "5", "19", "29"],
        ["middle", "0", "1", "11"],
        ["rival", "1.50", "1.40–1.60", "1.20", "1.10–1.30", "better"],
    ):
        assert row in rows


def test_every_knob_means_what_it_says(evaluate, drawn):
    panel, swapped = explorer(evaluate, texts=("one", "other")), ("draft", "middle", MAX_GRAM)
    order = panel.knobs["order"]
    assert [names for _, names in order.options] == [NAMES, swapped], "Max-Gram stays last"
    assert panel.knobs["k11"].description == "middle ← draft"
    order.value = swapped
    assert evaluate.calls[-1][0].drafters == swapped
    assert panel.knobs["k11"].description == "draft ← middle"
    order.value = NAMES
    turns = {"k01": 0, "k11": 4, "lenience": 3.0, "price_draft": 0.5, "texts": "other"}
    for name, value in (turns | {"exempt": False}).items():
        panel.knobs[name].value = value
    setting = CascadeSetting(NAMES, ((5, 0, 10), (0, 4, 10), (0, 0, 10)), 3.0, False)
    assert evaluate.calls[-1] == (setting, PRICES | {"draft": 0.5}, "other")
    assert drawn.named("rivals", "title").endswith("lenience 3, other")


def test_presets_turn_the_setting_or_the_prices(evaluate):
    pair = CascadeSetting(("draft", MAX_GRAM), ((2, 10), (0, 5)), 2.0)
    panel = explorer(evaluate, presets={"pair": pair, "cheap": {"middle": 0.05, "draft": 0.01}})
    panel.buttons["pair"].click()
    whole = CascadeSetting(NAMES, ((0, 2, 10), (0, 0, 0), (0, 0, 5)), 2.0)
    assert evaluate.calls[-1] == (whole, PRICES, "one")
    panel.buttons["cheap"].click()
    assert evaluate.calls[-1] == (whole, {"target": 1.0, "middle": 0.05, "draft": 0.01}, "one")


def test_settings_and_prices_of_other_drafters_are_refused(evaluate):
    with pytest.raises(ValueError, match=r"'order' cannot be at .*'middle'"):
        explorer(evaluate, ("draft", MAX_GRAM))
    with pytest.raises(ValueError, match=r"a price of 0 or more is needed .*, middle has none in"):
        explorer(evaluate, presets={"half": {"small": 0.1}})


def test_prices_change_the_numbers_as_the_replay_has_it(replays, drawn):
    """Counted again from the rounds; at another price the same prediction would be wrong."""
    panel = explorer(replays.beside, start=OURS, texts=list(replays.texts))
    played = [replay_cascade(one, OURS) for one in replays.texts["one"]]
    tokens, rounds = (sum(count(one.emitted) for one in played) for count in (sum, len))
    passes = {name: sum(one.passes[name] for one in played) for name in ("middle", "draft")}
    shown = []
    for price in (0.2, 0.04):
        panel.knobs["price_draft"].value = price
        shown.append(drawn.given("rivals").swi[0])
        paid = rounds + 0.3 * passes["middle"] + price * passes["draft"]
        assert shown[-1] == pytest.approx(tokens / paid)
    panel.knobs["texts"].value = "other"
    shown.append(drawn.given("rivals").swi[0])
    wanted = replayed_swi(replays.texts["other"], OURS, PRICES | {"draft": 0.04})
    assert shown[-1] == pytest.approx(wanted)
    assert len({round(one, 3) for one in shown}) == 3, "the control"


def test_a_row_has_the_numbers_of_measured_and_the_best_drafter_alone(replays):
    texts, table = replays.texts["one"], replays.beside(OURS, PRICES, "one")
    [row] = cascade.swi_table(texts, {"": OURS}, PRICES).itertuples()
    wanted = (row.swi, row.low, row.high, row.tokens / row.rounds, row.draft_passes / row.rounds)
    columns = ["swi", "low", "high", "tokens_per_round", "draft_passes"]
    assert tuple(table.iloc[0][columns]) == pytest.approx(wanted, nan_ok=True)
    every = [CascadeSetting((one,), ((k,),)) for one in NAMES for k in (1, 2, 3, 4, 5, 6, 8, 10)]
    most = max(replayed_swi(texts, one, PRICES) for one in every)
    assert " alone, " in table.setting[1] and table.swi[1] >= most
    assert table.ratio[0] == 1 and table.ratio[2] == pytest.approx(table.swi[0] / table.swi[2])


def test_tried_and_accepted_are_counted_round_by_round():
    """Of 1 2 9 two are accepted and the third tried, then its own 3; then 4, the last."""
    draft = Choices((1, 2, 9, 4), (dict.fromkeys(range(10), 1.0),) * 4)
    text = cascade.Recording("", Sampler(0.0), (1, 2, 3, 4), {"draft": draft}, ((),) * 4)
    played = replay_cascade(text, CascadeSetting(("draft",), ((3,),)))
    assert (played.emitted, played.tried, played.accepted) == ((3, 1), 4, 3)


def test_the_tuner_turns_the_knobs_to_its_answer(replays, unchecked, monkeypatch):
    monkeypatch.setattr(explore_cascades, "TUNE_SECONDS", 600.0)
    tune = partial(replays.tune, lengths=(0, 1, 2, 4, 10))
    panel = explorer(replays.beside, start=OURS, tune=tune)
    panel.knobs["tune"].click()
    found = tune(NAMES, PRICES, "one", starts=[OURS], tell=lambda setting, swi: None)
    assert found.swi >= replayed_swi(replays.texts["one"], OURS, PRICES)
    at = panel.values()
    assert tuple(at[f"k0{column}"] for column in range(3)) == found.setting.matrix[0]
    assert ["this setting", f"{found.swi:.2f}"] in [row[:2] for row in cells(panel.words.value)]


@pytest.mark.parametrize("refuses", [True, False])
def test_a_tuner_is_stopped_in_time_and_a_refusal_is_quoted(replays, monkeypatch, refuses):
    monkeypatch.setattr(explore_cascades, "TUNE_SECONDS", 600.0 if refuses else 0.0)
    panel = explorer(replays.beside, start=OURS, tune=refuse if refuses else replays.tune)
    before = panel.values()
    panel.knobs["tune"].click()
    said = "no &lt;text&gt;" if refuses else "the best of 1 settings"
    assert panel.values() == before and said in panel.words.value


def test_a_tuner_that_is_stopped_leaves_the_best_so_far(replays):
    better, worse = (replace(OURS, lenience=lenience) for lenience in (2.0, 5.0))

    def tune(*_, starts, tell):
        for setting, swi in (better, 9.0), (worse, 0.1):
            tell(setting, swi)
        raise TimeoutError

    panel = explorer(replays.beside, start=OURS, tune=tune)
    panel.knobs["tune"].click()
    assert panel.values()["lenience"] == 2.0 and "the best of 3 settings" in panel.words.value


@pytest.mark.parametrize(
    "setting", [CascadeSetting(("middle", MAX_GRAM), ((2, 6), (0, 3)), 2.0), OURS]
)
def test_a_setting_among_more_drafters_plays_the_same_rounds(replays, setting):
    one = replays.texts["one"][0]
    inner, outer = replay_cascade(one, setting), replay_cascade(one, widen(setting, NAMES))
    assert inner.emitted == outer.emitted
    assert inner.passes.items() <= outer.passes.items()


def test_what_is_not_recorded_is_refused(replays):
    with pytest.raises(ValueError, match="the recorded texts are one, other, got 'third'"):
        replays.beside(OURS, PRICES, "third")
    with pytest.raises(ValueError, match="middle has none"):
        replays.beside(OURS, {"target": 1.0, "draft": 0.1}, "one")
