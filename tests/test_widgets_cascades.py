"""The cascade explorer: its knobs ask what they say, prices change the numbers exactly as the
replay has it, and the tuner turns the knobs.
"""

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
from specdec_lib.show import figures
from specdec_lib.show.widgets import cascade_explorer

K = ((5, 14, 10), (0, 1, 10), (0, 0, 10))
NAMES = ("middle", "draft", MAX_GRAM)
PRICES = {"target": 1.0, "middle": 0.3, "draft": 0.2}
START = CascadeSetting(NAMES, K)
OURS = CascadeSetting(NAMES, ((2, 1, 4), (0, 1, 4), (0, 0, 4)), 3.0)


def recording(name: str, seed: int, length: int = 60) -> Recording:
    """A text of four kinds of token in which the middle is right nine times in ten, the draft
    seven, and copies four.
    """
    dice = np.random.default_rng(seed)
    text = tuple(dice.integers(0, 4, length).tolist())

    def choices(right: float) -> Choices:
        said = tuple(token if dice.random() < right else (token + 1) % 4 for token in text)
        worth = dice.random((length, 4)).astype(np.float32)
        worth[np.arange(length), said] = 1.0
        return Choices(said, worth)

    copies = tuple(
        tuple(token if dice.random() < 0.4 else 0 for token in text[place : place + 64])
        for place in range(length)
    )
    return Recording(
        name, Sampler(0.0), text, {"middle": choices(0.9), "draft": choices(0.7)}, copies
    )


@pytest.fixture(scope="module")
def replays() -> Replays:
    texts = {
        "one": [recording(name, seed) for seed, name in enumerate("abc")],
        "other": [recording(name, seed) for seed, name in enumerate("de", 9)],
    }
    return Replays(texts, {"the paper's": START})


@pytest.fixture
def asked():
    """What an explorer asked for, and an evaluation that remembers it and refuses an empty cascade."""
    heard = []

    def evaluate(setting, prices, texts):
        heard.append((setting, prices, texts))
        if not any(setting.matrix[0]):
            raise ValueError(f"an empty <cascade>: {setting.matrix[0]}")
        row = {
            "swi": 1.5,
            "low": 1.4,
            "high": 1.6,
            "tokens_per_round": 2.0,
            "acceptance_rate": 0.5,
            "texts": 3,
        }
        row |= {f"{name}_{what}": 1.0 for name in prices for what in ("passes", "price")} | {
            "ratio": 1.0,
            "ratio_low": 1.0,
            "ratio_high": 1.0,
        }
        return pd.DataFrame(
            [
                row | {"setting": "this setting"},
                row | {"setting": "rival", "ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3},
            ]
        )

    return evaluate, heard


def test_the_explorer_starts_at_its_setting_and_shows_it_in_both_conventions(asked):
    evaluate, heard = asked
    panel = cascade_explorer(evaluate, NAMES, prices=PRICES, start=START)
    assert heard[-1] == (START, PRICES, "")
    rows = [line.split() for line in panel.words.value.splitlines()[1:]]
    assert rows[0] == ["target", "5", "14", "10", "5", "19", "29"] and rows[1][:7] == [
        "middle",
        "0",
        "1",
        "10",
        "0",
        "1",
        "11",
    ]
    assert panel.figures[0].layout.title.text == "target ← middle ← draft ← Max-Gram, lenience 1"
    assert "1.20 times that of rival (1.10 to 1.30): better" in panel.words.value


def test_every_knob_of_the_explorer_asks_for_what_it_says(asked):
    evaluate, heard = asked
    panel = cascade_explorer(evaluate, NAMES, prices=PRICES, start=START, texts=("one", "other"))
    for name, value in {
        "k01": 0,
        "k11": 4,
        "lenience": 3.0,
        "exempt": False,
        "price_draft": 0.5,
        "texts": "other",
    }.items():
        panel.knobs[name].value = value
    matrix = ((5, 0, 10), (0, 4, 10), (0, 0, 10))
    assert heard[-1] == (
        CascadeSetting(NAMES, matrix, 3.0, False),
        PRICES | {"draft": 0.5},
        "other",
    )
    assert (
        "lenience 3" in panel.figures[0].layout.title.text
        and "exempt" not in panel.figures[0].layout.title.text
    )
    panel.turn(**panel._start)
    assert heard[-1] == (START, PRICES, "one")


def test_max_gram_stays_last_in_every_order_and_the_entries_are_named_anew(asked):
    evaluate, heard = asked
    panel = cascade_explorer(evaluate, NAMES, prices=PRICES, start=START)
    order = panel.knobs["order"]
    assert [names for _, names in order.options] == [NAMES, ("draft", "middle", MAX_GRAM)]
    assert panel.knobs["k11"].description == "middle ← draft"
    order.value = ("draft", "middle", MAX_GRAM)
    assert (
        heard[-1][0].drafters == ("draft", "middle", MAX_GRAM)
        and panel.knobs["k11"].description == "draft ← middle"
    )


def test_the_explorer_says_why_a_setting_is_refused_keeps_its_figure_and_recovers(asked):
    evaluate, heard = asked
    panel = cascade_explorer(evaluate, NAMES, prices=PRICES, start=START)
    panel.turn(k00=0, k01=0, k02=0)
    assert "an empty &lt;cascade&gt;: (0, 0, 0)" in panel.words.value and len(panel.figures[0].data)
    panel.knobs["k00"].value = 2
    assert "empty" not in panel.words.value and heard[-1][0].matrix[0] == (2, 0, 0)


def test_presets_turn_the_setting_or_the_prices(asked):
    evaluate, heard = asked
    presets = {
        "pair": CascadeSetting(("draft", MAX_GRAM), ((2, 10), (0, 5)), 2.0),
        "cheap": {"middle": 0.05, "draft": 0.01},
    }
    panel = cascade_explorer(evaluate, NAMES, prices=PRICES, start=START, presets=presets)
    buttons = {button.description: button for button in panel.children[1].children}
    buttons["pair"].click()
    assert heard[-1] == (CascadeSetting(NAMES, ((0, 2, 10), (0, 0, 0), (0, 0, 5)), 2.0), PRICES, "")
    buttons["cheap"].click()
    assert heard[-1][1] == {"target": 1.0, "middle": 0.05, "draft": 0.01} and heard[-1][0].matrix[
        0
    ] == (0, 2, 10)


@pytest.mark.parametrize(
    "drafters, options, message",
    [
        ((), {}, "needs a drafter"),
        (NAMES, {"lengths": (0,)}, "a length above 0"),
        (NAMES, {"texts": ()}, "and 0 texts"),
        (NAMES, {"prices": {"target": 1.0, "draft": 0.2}}, "middle has none"),
        (
            ("draft", MAX_GRAM),
            {"start": START},
            "the drafters are draft, Max-Gram, the setting has middle",
        ),
        (
            NAMES,
            {"start": replace(START, matrix=((1, 0, 0), (1, 0, 0), (0, 0, 0)))},
            "upper triangular",
        ),
        (
            NAMES,
            {"start": START, "lengths": (0, 1, 5, 10)},
            r"an entry is one of .*, row 0 is \(5, 14, 10\)",
        ),
        (NAMES, {"start": replace(START, lenience=7.0)}, "lenience is one of .*, got 7.0"),
        (
            NAMES,
            {"presets": {"half": {"draft": 0.1}}},
            "a price of 0 or more for middle, draft, middle has none",
        ),
        (
            NAMES,
            {"presets": {"odd": replace(START, matrix=((7, 0, 0), (0, 0, 0), (0, 0, 0)))}},
            r"row 0 is \(7, 0, 0\)",
        ),
    ],
)
def test_an_explorer_that_starts_nowhere_is_refused(asked, drafters, options, message):
    with pytest.raises(ValueError, match=message):
        cascade_explorer(asked[0], drafters, **{"prices": PRICES} | options)


def test_prices_change_the_numbers_as_the_replay_has_it(replays):
    """Counted again from the rounds; at another price the same prediction would be wrong."""
    panel = cascade_explorer(
        replays.beside, NAMES, prices=PRICES, start=OURS, texts=list(replays.texts)
    )
    played = [replay_cascade(one, OURS) for one in replays.texts["one"]]
    tokens, rounds = (
        sum(sum(one.emitted) for one in played),
        sum(len(one.emitted) for one in played),
    )
    passes = {name: sum(one.passes[name] for one in played) for name in ("middle", "draft")}
    shown = {}
    for price in (0.2, 0.04):
        panel.knobs["price_draft"].value = price
        paid = rounds + 0.3 * passes["middle"] + price * passes["draft"]
        shown[price] = panel.figures[0].data[0].x[0]
        assert shown[price] == pytest.approx(tokens / paid)
        assert shown[price] == pytest.approx(
            replayed_swi(replays.texts["one"], OURS, PRICES | {"draft": price})
        )
    assert shown[0.2] != pytest.approx(shown[0.04], rel=1e-3), (
        "the negative control: a price that did nothing"
    )
    panel.knobs["texts"].value = "other"
    assert panel.figures[0].data[0].x[0] == pytest.approx(
        replayed_swi(replays.texts["other"], OURS, PRICES | {"draft": 0.04})
    )


def test_a_row_has_the_numbers_of_measured_and_the_best_drafter_alone(replays):
    table = replays.beside(OURS, PRICES, "one")
    [row] = swi_table(replays.texts["one"], {"": OURS}, PRICES).itertuples()
    assert (table.swi[0], table.low[0], table.high[0]) == pytest.approx(
        (row.swi, row.low, row.high)
    )
    assert table.tokens_per_round[0] == pytest.approx(
        row.tokens / row.rounds
    ) and table.draft_passes[0] == pytest.approx(row.draft_passes / row.rounds)
    name, best = replays.best_alone(NAMES, PRICES, "one")
    every = [
        CascadeSetting((drafter,), ((length,),))
        for drafter in NAMES
        for length in (1, 2, 3, 4, 5, 6, 8, 10)
    ]
    assert table.setting[1] == name and replays.swi(best, PRICES, "one") >= max(
        replayed_swi(replays.texts["one"], one, PRICES) for one in every
    )
    assert table.ratio[0] == 1 and table.ratio[2] == pytest.approx(table.swi[0] / table.swi[2])


def test_tried_and_accepted_are_counted_round_by_round():
    """Of 1 2 9 the target accepts two and comes to the third; behind them its own 3; then 4, with
    which the text ends.
    """
    text, said = (1, 2, 3, 4), (1, 2, 9, 4)
    draft = Choices(said, np.ones((4, 10), dtype=np.float32))
    played = replay_cascade(
        Recording("", Sampler(0.0), text, {"draft": draft}, ((),) * 4),
        CascadeSetting(("draft",), ((3,),)),
    )
    assert (played.emitted, played.tried, played.accepted) == ((3, 1), 4, 3)


def test_the_tuner_turns_the_knobs_to_its_answer(replays, unchecked):
    tuner = {"tune": replays.tune, "tune_seconds": 600.0, "lengths": (0, 1, 2, 4, 10)}
    panel = cascade_explorer(
        replays.beside, NAMES, prices=PRICES, start=OURS, texts=list(replays.texts), **tuner
    )
    before = panel.figures[0].data[0].x[0]
    panel.knobs["tune"].click()
    after, setting = (
        panel.figures[0].data[0].x[0],
        {name: knob.value for name, knob in panel.knobs.items() if name != "tune"},
    )
    found = replays.tune(
        NAMES,
        PRICES,
        "one",
        lengths=(0, 1, 2, 4, 10),
        leniences=(1.0, 2.0, 3.0, 5.0, 10.0),
        starts=[OURS],
    )
    assert after >= before and after == pytest.approx(found.swi)
    assert tuple(setting[f"k0{column}"] for column in range(3)) == found.setting.matrix[0]
    assert "settings tried" in panel.words.value and not panel.knobs["tune"].disabled


def test_the_tuner_is_stopped_when_its_time_is_up_and_keeps_the_best_so_far(replays):
    panel = cascade_explorer(
        replays.beside,
        NAMES,
        prices=PRICES,
        start=OURS,
        tune=replays.tune,
        tune_seconds=0.0,
        texts=("one",),
    )
    before = panel.values()
    panel.knobs["tune"].click()
    assert (
        panel.values() == before
        and "the best of 1 settings" in panel.words.value
        and "press again" in panel.words.value
    )


@pytest.mark.parametrize(
    "answer, words",
    [
        (None, "no &lt;text&gt;"),
        (replace(START, matrix=((7, 0, 0), (0, 0, 0), (0, 0, 0))), "row 0 is (7, 0, 0)"),
    ],
)
def test_a_tuner_that_refuses_or_answers_what_no_knob_has_is_quoted(asked, answer, words):
    def tune(*_: object, **__: object) -> Tuned:
        if answer is None:
            raise ValueError("no <text>")
        return Tuned(answer, 1.0, 1)

    panel = cascade_explorer(asked[0], NAMES, prices=PRICES, start=START, tune=tune)
    before = panel.values()
    panel.knobs["tune"].click()
    assert (
        words in panel.words.value and panel.values() == before and not panel.knobs["tune"].disabled
    )


def test_a_setting_among_more_drafters_plays_the_same_rounds(replays):
    one = replays.texts["one"][0]
    pair = CascadeSetting(("middle", MAX_GRAM), ((2, 6), (0, 3)), 2.0)
    for setting in (
        CascadeSetting(("draft",), ((4,),)),
        pair,
        CascadeSetting((MAX_GRAM,), ((8,),)),
    ):
        inner, outer = replay_cascade(one, setting), replay_cascade(one, widen(setting, NAMES))
        assert inner.emitted == outer.emitted and all(
            outer.passes[name] == count for name, count in inner.passes.items()
        )
    assert widen(OURS, NAMES) == OURS


def test_what_is_not_recorded_is_refused(replays):
    with pytest.raises(ValueError, match="the recorded texts are one, other, got 'third'"):
        replays.beside(OURS, PRICES, "third")
    with pytest.raises(ValueError, match="middle has none"):
        replays.beside(OURS, {"target": 1.0, "draft": 0.1}, "one")
    with pytest.raises(ValueError, match="recorded texts under each name, got none for any"):
        Replays({})


def test_rivals_are_drawn_with_price_pieces_that_add_up(replays):
    table = replays.beside(OURS, PRICES, "one")
    figure = figures.rivals(table, title="ours")
    pieces = [
        trace for trace in figure.data if trace.type == "bar" and trace.showlegend is not False
    ]
    assert [trace.name for trace in pieces] == ["target", "middle", "draft"] and len(
        {trace.marker.pattern.shape for trace in pieces}
    ) == 3
    total = sum(np.array(trace.x, dtype=float) for trace in pieces)
    assert total == pytest.approx((table.tokens_per_round / table.swi).to_numpy())
    with pytest.raises(ValueError, match="at most one row per setting"):
        figures.rivals(pd.concat([table, table]))
