"""Rows in, a table with intervals out, and what it comes to in words: speculate, or do not."""

import math
from functools import partial

import pandas as pd

from specdec_lib.measure.ratios import LEAST_FOR_WORDS, LEAST_PROMPTS, Ratio, summarise
from specdec_lib.measure.settings.names import HUGGING_PLAIN, PLAIN

# tokens per round up to which a method guesses nothing that helps, whatever the clock says
HARDLY = 1.02


def method_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Per method: tokens per round, acceptance rate, milliseconds per token, and how many times
    less that is than plain decoding's.

    rows    of `compare_methods`: every method has the same prompts in the same order

    `speed_up` is total time per token ÷ total time per token against our plain decoding, with its
    95 % interval over prompts, drawn together for both; `gain` the same against `baseline`, the
    faster of our plain decoding and Hugging Face's. `same` says whether every text is the target's
    own: "yes", "no", "near ties" where they part at rounding alone, "–" where noise differs.
    `looping` counts the prompts whose text repeats itself.
    """
    groups = rows.groupby("method", sort=False)
    fastest = min((PLAIN, HUGGING_PLAIN), key=lambda name: _per_token(groups.get_group(name)))
    speed = Ratio("timed_tokens", "seconds", relative=True)
    ratios = {
        "tokens_per_round": Ratio("tokens", "rounds", ends=False),
        "acceptance_rate": Ratio("accepted", "tried", share=True, ends=False),
        "ms_per_token": Ratio("seconds", "timed_tokens", times=1000, ends=False),
        "speed_up": speed,
    }
    compared = partial(summarise, rows, ["method"], least=LEAST_FOR_WORDS)
    found = compared(ratios, baseline={"method": PLAIN}).set_index("method")
    found.insert(0, "prompts", found.pop("prompts"))
    gain = compared({"gain": speed}, baseline={"method": fastest}).set_index("method")
    found = found.assign(baseline=fastest).join(gain.drop(columns="prompts"))
    found["same"] = {name: _same(own) for name, own in groups}
    found["looping"] = groups.loops.sum().astype(int)
    return found.reset_index()


def _per_token(rows: pd.DataFrame) -> float:
    return rows.seconds.sum() / rows.timed_tokens.sum() if rows.timed_tokens.any() else math.inf


def _same(rows: pd.DataFrame) -> str:
    if rows.same.isna().any():
        return "–"
    if rows.same.all():
        return "yes"
    return "near ties" if rows.rounding[~rows.same.astype(bool)].all() else "no"


def verdict(table: pd.DataFrame) -> str:
    """What a table of `method_summary` comes to, in words.

    The faster of both plain decoders has to be beaten. Methods whose text is not the target's own
    are passed over, and those with hardly an accepted guess, whose gain is the clock's noise.
    """
    right = table[~table.method.isin((PLAIN, HUGGING_PLAIN)) & (table.same != "no")]
    fair = right[(right.tokens_per_round > HARDLY) & right.gain.notna()]
    wrong = table.method[table.same == "no"].tolist()
    if right.empty:
        said = ["Do not speculate: no method wrote the target's own text."]
    elif fair.empty:
        which = " that wrote the target's own text" if wrong else ""
        said = [f"Do not speculate: hardly a guess of any method{which} was accepted."]
    else:
        best = fair.iloc[fair.gain.argmax()]
        said = [_advice(best)]
        said.append(
            f"Too few prompts to rely on ({best.prompts}): ask for {LEAST_FOR_WORDS} or more."
            if best.prompts < LEAST_FOR_WORDS
            else "The winner was picked on the prompts it is judged on, so expect a little less."
        )
        if best.looping:
            many = f"{best.looping} of {best.prompts} texts repeat themselves"
            said.append(f"{many}, which flatters whatever copies.")
    if wrong:
        said.append(f"Not the target's own text, by more than rounding: {', '.join(wrong)}.")
    return " ".join(said)


def _advice(best: pd.Series) -> str:
    numbers = f"{best.gain:.2f} times as fast as plain decoding"
    if best.baseline != PLAIN:
        numbers += " by Hugging Face, the faster of both"
    if best.prompts >= LEAST_PROMPTS:
        numbers += f" ({best.gain_low:.2f}–{best.gain_high:.2f})"
    if best.gain_low > 1:
        return f"Speculate: {best.method} is {numbers}."
    found = f"the best method, {best.method}, is {numbers}"
    if best.gain < 1:
        return f"Do not speculate: {found}."
    return f"No clear gain: {found}; plain decoding is simpler."
