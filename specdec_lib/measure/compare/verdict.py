"""Rows in, a table with intervals out, and what it comes to in words: speculate, or do not."""

import math

import pandas as pd

from specdec_lib.measure.intervals import (
    LEAST_FOR_WORDS,
    LEAST_PROMPTS,
    bootstrap,
    named_interval,
)

PLAIN, HUGGING_PLAIN = "plain", "Hugging Face, plain"
# tokens per round up to which a method guesses nothing that helps, whatever the clock says
HARDLY = 1.02


def method_summary(rows: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Per method: tokens per round, acceptance rate, milliseconds per token, and how many times
    less that is than plain decoding's.

    rows    of `compare_methods`: every method has the same prompts in the same order

    `speed_up` is total time per token ÷ total time per token against our plain decoding, with its
    95 % interval over prompts, drawn together for both; `gain` the same against `baseline`, the
    faster of our plain decoding and Hugging Face's. `same` says whether every text is the target's
    own: "yes", "no", "near ties" where they part at rounding alone, "–" where noise differs.
    `looping` counts the prompts whose text repeats itself.
    """
    by_name = dict(list(rows.groupby("method", sort=False)))
    fastest = min((PLAIN, HUGGING_PLAIN), key=lambda name: _per_token(by_name[name]))
    return pd.DataFrame(
        {
            "method": name,
            "prompts": len(own),
            "tokens_per_round": own.tokens.sum() / own["rounds"].sum(),
            "acceptance_rate": _share(own.accepted, own.tried),
            "ms_per_token": 1000 * _per_token(own),
            **_ratio("speed_up", by_name[PLAIN], own, seed),
            "baseline": fastest,
            **_ratio("gain", by_name[fastest], own, seed),
            "same": _same(own),
            "looping": int(own.loops.sum()),
        }
        for name, own in by_name.items()
    )


def _share(part: pd.Series, whole: pd.Series) -> float:
    return part.sum() / whole.sum() if whole.any() else math.nan


def _per_token(rows: pd.DataFrame) -> float:
    return rows.seconds.sum() / rows.timed_tokens.sum() if rows.timed_tokens.sum() else math.inf


def _ratio(name: str, plain: pd.DataFrame, own: pd.DataFrame, seed: int) -> dict[str, float]:
    columns = (plain.seconds, plain.timed_tokens, own.seconds, own.timed_tokens)
    return named_interval(name, bootstrap(*columns, seed=seed, least=LEAST_FOR_WORDS))


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
    wrong = table.method[table.same == "no"].tolist()
    fair = table[
        ~table.method.isin((PLAIN, HUGGING_PLAIN, *wrong)) & (table.tokens_per_round > HARDLY)
    ]
    right = " that wrote the target's own text" if wrong else ""
    said = [f"Do not speculate: hardly a guess of any method{right} was accepted."]
    if {*table.method} <= {PLAIN, HUGGING_PLAIN, *wrong}:
        said = ["Do not speculate: no method wrote the target's own text."]
    if fair.gain.notna().any():
        best = fair.loc[fair.gain.idxmax()]
        said = [_advice(best)]
        said.append(
            f"Too few prompts to rely on ({best.prompts}): ask for {LEAST_FOR_WORDS} or more."
            if best.prompts < LEAST_FOR_WORDS
            else "The winner was picked on the prompts it is judged on, so expect a little less."
        )
        if best.looping:
            said.append(
                f"{best.looping} of {best.prompts} texts repeat themselves, which flatters whatever"
                " copies."
            )
    if wrong:
        said.append(f"Not the target's own text, by more than rounding: {', '.join(wrong)}.")
    return " ".join(said)


def _advice(best: pd.Series) -> str:
    against = (
        "plain decoding"
        if best.baseline == PLAIN
        else "plain decoding by Hugging Face, the faster of both"
    )
    numbers = f"{best.gain:.2f} times as fast as {against}"
    if best.prompts >= LEAST_PROMPTS:
        numbers += f" ({best.gain_low:.2f}–{best.gain_high:.2f})"
    if best.gain_low > 1:
        return f"Speculate: {best.method} is {numbers}."
    if best.gain < 1:
        return f"Do not speculate: the best method, {best.method}, is {numbers}."
    return (
        f"No clear gain: the best method, {best.method}, is {numbers}; plain decoding is simpler."
    )
