"""What a comparison's table says, and what it comes to in words."""

import math

import pandas as pd
import pytest

from specdec_lib.measure.compare.verdict import HUGGING_PLAIN, PLAIN, method_summary, verdict


def table(*seconds, names=(PLAIN, HUGGING_PLAIN, "chain of 2"), **more):
    """Rows of methods with one number of seconds each, or one per prompt."""
    row = {"tokens": 10, "timed_tokens": 10, "rounds": 5, "accepted": 3, "tried": 4}
    row |= {"same": True, "margin": math.nan, "rounding": None, "loops": False} | more
    found = [
        {"method": name, "prompt": str(number), "seconds": one} | row
        for name, given in zip(names, seconds, strict=True)
        for number, one in enumerate(given if isinstance(given, tuple) else (given,) * 5)
    ]
    return pd.DataFrame(found).astype({"same": object, "rounding": object})


def test_a_ratio_is_total_time_per_token_against_plain_on_the_same_prompts():
    told = method_summary(table((1.0, 2.0, 3.0, 2.0), (4.0,) * 4, (1.0,) * 4))
    row = told.set_index("method").loc["chain of 2"]
    assert (row.speed_up, row.ms_per_token, row.acceptance_rate) == (2, 100, 0.75)
    assert row.speed_up_low < 2 < row.speed_up_high and row.baseline == PLAIN


def test_the_faster_plain_decoder_is_what_has_to_be_beaten():
    told = method_summary(table(4.0, 1.0, 2.0))
    assert (told.speed_up[2], told.gain[2]) == (2, 0.5) and (told.baseline == HUGGING_PLAIN).all()
    assert verdict(told).startswith("Do not speculate: the best method, chain of 2, is 0.50 times")


@pytest.mark.parametrize(
    "seconds, more, said",
    [
        ((2.0, 3.0, 1.0), {}, "Speculate: chain of 2 is 2.00 times"),
        ((1.0, 3.0, 2.0), {}, "Do not speculate: the best method, chain of 2, is 0.50 times"),
        ((1.0, 3.0, (0.2, 0.2, 0.2, 1.0, 3.0)), {}, "No clear gain"),
        (((2.0,) * 3, (3.0,) * 3, (1.0,) * 3), {}, "Too few prompts to rely on (3)"),
        ((2.0, 3.0, 1.0), {"loops": True}, "5 of 5 texts repeat themselves"),
        # the clock's noise is no gain
        ((2.0, 3.0, 1.9), {"rounds": 10, "accepted": 0}, "hardly a guess of any method was"),
    ],
)
def test_the_verdict_is_in_words(seconds, more, said):
    assert said in verdict(method_summary(table(*seconds, **more)))


def test_the_verdict_passes_over_a_text_that_is_not_the_targets():
    broken = table(0.1, names=("broken",), same=False, margin=0.7, rounding=False)
    tied = table(1.5, names=("tied",), same=False, margin=1e-5, rounding=True)
    told = method_summary(pd.concat([table(2.0, 3.0, 1.0), broken, tied]))
    assert told.same.tolist() == ["yes", "yes", "yes", "no", "near ties"]
    said = verdict(told)
    assert said.startswith("Speculate: chain of 2") and said.endswith("rounding: broken.")
    plain = table(2.0, 3.0, names=(PLAIN, HUGGING_PLAIN))
    said = verdict(method_summary(pd.concat([plain, broken])))
    assert said.startswith("Do not speculate: no method wrote the target's own text.")
    idle = table(1.0, names=("idle",), rounds=10, accepted=0)
    said = verdict(method_summary(pd.concat([plain, broken, idle])))
    assert said.startswith("Do not speculate: hardly a guess of any method that wrote")
