"""The cascade explorer: its numbers are the replay's at any prices, the tuner turns its knobs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.replay import (
    MAX_GRAM,
    CascadeSetting,
    Recording,
    Replays,
    Tuned,
    replay_cascade,
    swi_table,
    widen,
)
from specdec_lib.measure.replay.recording import Choices
from specdec_lib.measure.replay.tuning import replayed_swi
from specdec_lib.show.widgets import cascade_explorer, explore_cascades

K = ((5, 14, 10), (0, 1, 10), (0, 0, 10))
NAMES = ("middle", "draft", MAX_GRAM)
PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
START = CascadeSetting(NAMES, K)
OURS = CascadeSetting(NAMES, ((2, 1, 4), (0, 1, 4), (0, 0, 4)), 3.0)
FULL = replace(START, matrix=((1, 0, 0), (1, 0, 0), (0, 0, 0)))
LENIENT = replace(START, lenience=7.0)
ODD = replace(START, matrix=((7, 0, 0), (0, 0, 0), (0, 0, 0)))


def recording(name: str, seed: int, length: int = 60) -> Recording:
    """Of four kinds of token the middle is right for .9, the draft for .7, copies for .4."""
    dice = np.random.default_rng(seed)
    text = tuple(dice.integers(0, 4, length).tolist())

    def choices(right: float) -> Choices:
        chosen = tuple(token if dice.random() < right else (token + 1) % 4 for token in text)
        worth = dice.random((length, 4)).astype(np.float32)
        worth[np.arange(length), chosen] = 1.0
        return Choices(chosen, tuple(dict(enumerate(row)) for row in worth.tolist()))

    ahead = (text[place : place + 64] for place in range(length))
    copies = tuple(tuple(t if dice.random() < 0.4 else 0 for t in one) for one in ahead)
    models = {"middle": choices(0.9), "draft": choices(0.7)}
    return Recording(name, Sampler(0.0), text, models, copies)


def made_replays() -> Replays:
    texts = {
        "one": [recording(name, seed) for seed, name in enumerate("abc")],
        "other": [recording(name, seed) for seed, name in enumerate("de", 9)],
    }
    return Replays(texts, {"the paper's": START})


replays = pytest.fixture(made_replays, scope="module")


class Evaluation:
    """An evaluation that remembers its calls, and refuses an empty cascade."""

    def __init__(self) -> None:
        self.calls = []

    def __call__(self, setting, prices, texts):
        self.calls.append((setting, dict(prices), texts))
        if not any(setting.matrix[0]):
            raise ValueError(f"an empty <cascade>: {setting.matrix[0]}")
        row = {"swi": 1.5, "low": 1.4, "high": 1.6, "tokens_per_round": 2.0, "texts": 10}
        row |= {f"{name}_{what}": 1.0 for name in prices for what in ("passes", "price")}
        row |= {"acceptance_rate": 0.5, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
        rival = {"setting": "rival", "ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3}
        return pd.DataFrame([row | {"setting": "this setting"}, row | rival])


@pytest.fixture
def evaluate():
    return Evaluation()


def refuse(*_: object, **__: object) -> Tuned:
    raise ValueError("no <text>")


def explorer(evaluate, drafters=NAMES, **options):
    given = {"prices": PRICES, "start": START, "texts": ("one",), "presets": {}, "tune": refuse}
    return cascade_explorer(evaluate, drafters, **given | options)


def test_the_explorer_starts_at_its_setting_and_shows_it_in_both_conventions(evaluate):
    panel = explorer(evaluate)
    assert evaluate.calls[-1] == (START, PRICES, "one")
    rows = [line.split() for line in panel.words.value.splitlines()[1:]]
    assert rows[0] == ["target", "5", "14", "10", "5", "19", "29"]
    assert rows[1][:7] == ["middle", "0", "1", "10", "0", "1", "11"]
    assert "1.20 (1.10–1.30) times that of rival: better" in panel.words.value


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


@pytest.mark.parametrize(
    "drafters, options, message",
    [
        ((), {"texts": ()}, "got 0 drafters and 0 texts"),
        (NAMES, {"prices": {"target": 1.0, "draft": 0.2}}, "middle has none"),
        (("draft", MAX_GRAM), {}, "'order' must be at one of"),
        (NAMES, {"start": FULL}, r"upper triangular, got \(\(1, 0, 0\), \(1, 0"),
        (NAMES, {"start": LENIENT}, "'lenience' must be at one of .*, got 7.0"),
        (NAMES, {"presets": {"half": {"draft": 0.1}}}, "for middle, draft, middle has none"),
        (NAMES, {"presets": {"odd": ODD}}, "'k00' must be at one of .*, got 7"),
    ],
)
def test_an_explorer_that_starts_nowhere_is_refused(evaluate, drafters, options, message):
    with pytest.raises(ValueError, match=message):
        explorer(evaluate, drafters, **options)


def test_prices_change_the_numbers_as_the_replay_has_it(replays, drawn):
    """Counted again from the rounds; at another price the same prediction would be wrong."""
    panel = explorer(replays.beside, start=OURS, texts=list(replays.texts))
    played = [replay_cascade(one, OURS) for one in replays.texts["one"]]
    tokens, rounds = (sum(count(one.emitted) for one in played) for count in (sum, len))
    passes = {name: sum(one.passes[name] for one in played) for name in ("middle", "draft")}
    shown = {}
    for price in (0.2, 0.04):
        panel.knobs["price_draft"].value = price
        shown[price] = drawn.given("rivals").swi[0]
        paid = rounds + 0.3 * passes["middle"] + price * passes["draft"]
        assert shown[price] == pytest.approx(tokens / paid)
    assert shown[0.2] != pytest.approx(shown[0.04], rel=1e-3), "the control"
    panel.knobs["texts"].value = "other"
    wanted = replayed_swi(replays.texts["other"], OURS, PRICES | {"draft": 0.04})
    assert drawn.given("rivals").swi[0] == pytest.approx(wanted)


def test_a_row_has_the_numbers_of_measured_and_the_best_drafter_alone(replays):
    texts, table = replays.texts["one"], replays.beside(OURS, PRICES, "one")
    [row] = swi_table(texts, {"": OURS}, PRICES).itertuples()
    ours = table.iloc[0]
    wanted = (row.swi, row.low, row.high, row.tokens / row.rounds, row.draft_passes / row.rounds)
    columns = ["swi", "low", "high", "tokens_per_round", "draft_passes"]
    assert tuple(ours[columns]) == pytest.approx(wanted, nan_ok=True)
    every = [CascadeSetting((one,), ((k,),)) for one in NAMES for k in (1, 2, 3, 4, 5, 6, 8, 10)]
    most = max(replayed_swi(texts, one, PRICES) for one in every)
    assert " alone, " in table.setting[1] and table.swi[1] >= most
    assert table.ratio[0] == 1 and table.ratio[2] == pytest.approx(table.swi[0] / table.swi[2])


def test_tried_and_accepted_are_counted_round_by_round():
    """Of 1 2 9 two are accepted and the third tried, then its own 3; then 4, the last."""
    draft = Choices((1, 2, 9, 4), (dict.fromkeys(range(10), 1.0),) * 4)
    text = Recording("", Sampler(0.0), (1, 2, 3, 4), {"draft": draft}, ((),) * 4)
    played = replay_cascade(text, CascadeSetting(("draft",), ((3,),)))
    assert (played.emitted, played.tried, played.accepted) == ((3, 1), 4, 3)


def test_the_tuner_turns_the_knobs_to_its_answer(replays, unchecked, monkeypatch):
    monkeypatch.setattr(explore_cascades, "TUNE_SECONDS", 600.0)
    monkeypatch.setattr(explore_cascades, "LENGTHS", (0, 1, 2, 4, 10))
    panel = explorer(replays.beside, start=OURS, tune=replays.tune)
    panel.knobs["tune"].click()
    choices = {"lengths": explore_cascades.LENGTHS, "leniences": explore_cascades.LENIENCES}
    choices |= {"starts": [OURS], "tell": lambda setting, swi: None}
    found = replays.tune(NAMES, PRICES, "one", **choices)
    assert found.swi >= replayed_swi(replays.texts["one"], OURS, PRICES)
    at = panel.values()
    assert tuple(at[f"k0{column}"] for column in range(3)) == found.setting.matrix[0]
    assert f"SWI {found.swi:.2f}" in panel.words.value and not panel.knobs["tune"].disabled


def test_the_tuner_is_stopped_when_its_time_is_up_and_keeps_the_best_so_far(replays, monkeypatch):
    monkeypatch.setattr(explore_cascades, "TUNE_SECONDS", 0.0)
    panel = explorer(replays.beside, start=OURS, tune=replays.tune)
    before = panel.values()
    panel.knobs["tune"].click()
    assert panel.values() == before and "the best of 1 settings" in panel.words.value


def test_a_tuner_that_refuses_is_quoted(evaluate):
    panel = explorer(evaluate)
    before = panel.values()
    panel.knobs["tune"].click()
    assert "no &lt;text&gt;" in panel.words.value and panel.values() == before
    assert not panel.knobs["tune"].disabled


@pytest.mark.parametrize(
    "setting",
    [
        CascadeSetting(("draft",), ((4,),)),
        CascadeSetting(("middle", MAX_GRAM), ((2, 6), (0, 3)), 2.0),
        CascadeSetting((MAX_GRAM,), ((8,),)),
        OURS,
    ],
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
