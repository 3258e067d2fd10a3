"""Answers in, a table out: per task and overall, sums ÷ sums with intervals over questions, and beside them what the published script prints."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from specdec_lib.intervals import bootstrap, paired_bootstrap
from specdec_lib.specbench.answers import Answer

if TYPE_CHECKING:
    from pandas import DataFrame

MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
GROUPS = dict.fromkeys(MT_BENCH, "mt_bench")  # eight categories that are published as one; any other stands for itself
OVERALL = "overall"
COUNTED, LEFT_OUT, UNCLEAR, ABSENT = "counted", "left out", "unclear", "absent"
NAMED = 8  # questions in an error message


def score(own: Sequence[Answer], baseline: Sequence[Answer] | None = None, *, seed: int = 0) -> "DataFrame":
    """A row per task and one overall.

    tokens_per_second       Σ tokens ÷ Σ seconds; `mean_of_rates` is the mean of the questions' own rates, which is what the published script prints
    tokens_per_round        Σ tokens of all rounds ÷ rounds, the target's own token counted: published as mean accepted tokens
    accepted_per_round      the same without the target's own: accepted guesses
    speed_up                tokens_per_second ÷ the baseline's, on the same questions; `ratio_of_means` is the published one, mean_of_rates ÷ the
                            baseline's; `mean_of_ratios` the mean over questions of rate ÷ rate

    Columns that end in _low and _high are 95 % intervals over questions, drawn again together with their baseline's. Answers that failed in either
    file are left out of everything and counted in `failed`.
    Raises ValueError if there is no answer left, or the files do not hold the same questions, choices and turns: it names them.
    """
    import pandas as pd

    paired = dict(zip(map(_key, own), own, strict=True))
    base = {} if baseline is None else dict(zip(map(_key, baseline), baseline, strict=True))
    if baseline is not None:
        _check_pairs(paired, base)
    failed = {key for key in paired if paired[key].failed or (key in base and base[key].failed)}
    if len(failed) == len(paired):
        raise ValueError(f"there is nothing to score: {len(paired)} answers, of which {len(failed)} failed")
    tasks = dict.fromkeys(map(_task, own))
    told = convention(own)
    rows = []
    for task in (*tasks, OVERALL):
        every = [key for key in paired if task in (OVERALL, _task(paired[key]))]
        kept = [key for key in every if key not in failed]
        row = {"task": task, "questions": len(kept), "failed": len(every) - len(kept), "bonus": told}
        row |= _rates([paired[key] for key in kept], told, seed)
        if baseline is not None:
            row |= _against([paired[key] for key in kept], [base[key] for key in kept], seed)
        rows.append(row)
    return pd.DataFrame(rows)


def convention(answers: Iterable[Answer]) -> str:
    """Whether `accept_lengths` counts the token that the target itself adds to every round: "counted", "left out", "unclear" or "absent".

    Told from the sums: they add up to all new tokens where it is counted, and to a round's worth less where it is not, give or take a token per
    turn (some methods count the one that comes with the prompt, some end in the middle of a round). The nearer of both is taken; neither where both
    are as near. The published methods count it.
    """
    answers = [answer for answer in answers if not answer.failed]
    emitted, rounds = (sum(map(of, answers)) for of in (_emitted, _rounds))
    turns = sum(len(choice.turns) for answer in answers for choice in answer.choices)
    tokens = sum(answer.tokens for answer in answers)
    if not rounds:
        return ABSENT
    counted, left_out = abs(emitted - tokens), abs(emitted + rounds - tokens)
    if min(counted, left_out) > turns or counted == left_out:
        return UNCLEAR
    return COUNTED if counted < left_out else LEFT_OUT


def common(own: Sequence[Answer], baseline: Sequence[Answer]) -> tuple[list[Answer], list[Answer], list[int | str]]:
    """Of both, the answers to questions that both have; and the numbers of the others."""
    sides = [{answer.question for answer in side} for side in (own, baseline)]
    both = sides[0] & sides[1]
    kept = [[answer for answer in side if answer.question in both] for side in (own, baseline)]
    return kept[0], kept[1], sorted(sides[0] ^ sides[1], key=str)


def _rates(answers: Sequence[Answer], told: str, seed: int) -> dict[str, float]:
    tokens, seconds = [answer.tokens for answer in answers], [answer.seconds for answer in answers]
    rounds = list(map(_rounds, answers))
    emitted = [_emitted(answer) + (count if told == LEFT_OUT else 0) for answer, count in zip(answers, rounds, strict=True)]
    per_round = bootstrap(emitted, rounds, seed=seed)
    row = {"tokens": sum(tokens), "seconds": sum(seconds)}
    row |= _named("tokens_per_second", bootstrap(tokens, seconds, seed=seed)) | {"mean_of_rates": _mean(map(_rate, answers))}
    return row | _named("tokens_per_round", per_round) | {"accepted_per_round": per_round[0] - 1}


def _against(own: Sequence[Answer], base: Sequence[Answer], seed: int) -> dict[str, float]:
    columns = [[of(answer) for answer in side] for side in (own, base) for of in (_tokens, _seconds)]
    means = [_mean(map(_rate, side)) for side in (own, base)]
    each = _mean(_rate(one) / _rate(other) if _rate(other) else math.nan for one, other in zip(own, base, strict=True))
    ratio = means[0] / means[1] if means[1] else math.nan
    return _named("speed_up", paired_bootstrap(*columns, seed=seed)) | {"ratio_of_means": ratio, "mean_of_ratios": each}


def _check_pairs(own: dict, base: dict) -> None:
    lacking, extra = [key for key in own if key not in base], [key for key in base if key not in own]
    if lacking or extra:
        said = [_few("the baseline lacks", lacking)] * bool(lacking) + [_few("the result lacks", extra)] * bool(extra)
        raise ValueError(f"a speed-up is paired by question and turn: {', '.join(said)}; `common` (--common) keeps what both have")


def _few(said: str, keys: Sequence[tuple]) -> str:
    """Questions with their turns, in words."""
    shown = ", ".join(f"{question} ({_turns(turns)})" for question, turns in keys[:NAMED])
    return f"{said} {shown}{f' and {len(keys) - NAMED} more' if len(keys) > NAMED else ''}"


def _turns(counts: Sequence[int]) -> str:
    return " and ".join(f"{count} turn{'' if count == 1 else 's'}" for count in counts)


def _key(answer: Answer) -> tuple[int | str, tuple[int, ...]]:
    """The question, and the number of turns of each choice."""
    return answer.question, tuple(len(choice.turns) for choice in answer.choices)


def _task(answer: Answer) -> str:
    return GROUPS.get(answer.category, answer.category)


def _named(name: str, found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def _mean(numbers: Iterable[float]) -> float:
    numbers = list(numbers)
    return sum(numbers) / len(numbers) if numbers else math.nan


def _tokens(answer: Answer) -> int:
    return answer.tokens


def _seconds(answer: Answer) -> float:
    return answer.seconds


def _rate(answer: Answer) -> float:
    return answer.tokens / answer.seconds


def _emitted(answer: Answer) -> int:
    return sum(answer.accept_lengths)


def _rounds(answer: Answer) -> int:
    return len(answer.accept_lengths)
