"""One method on one prompt: what every measurement gives, counted or by the clock."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import Generation, Round
from specdec_lib.measure.row_cache import Row
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import repetition
from specdec_lib.theory import Work
from specdec_lib.theory.work import Pass
from specdec_lib.workload import Prompt


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One method on one prompt. A count that was not taken is 0, or empty where it is by model; all
    else that was not measured is None.

    method, setting     the kind of draft, and which of its settings
    timed_tokens        of all tokens, those that were emitted within `seconds`
    rounds              passes of the target
    passes, rows        by model; so are context_tokens, the length up to the round's root summed
                        over passes, and model_seconds
    repetition          of the tokens; None where they are not known
    stop                why it ended: "stop token", "length" or "context"
    seconds             of all rounds; along a text without the target's
    prefill_seconds     of reading the prompt before them
    overhead_seconds    of the rounds outside the models
    loops               whether the target's own text repeats itself
    same                whether its text is the target's own; None if it need not be
    margin              nats by which the target prefers its own token at the first other one
    rounding            whether that is rounding; None where there is no other token
    load                processes that wanted to run, averaged over a minute by the system
    cores               that were busy on average while it ran, for other programs too; None where
                        nobody watched
    date                the day on which it was timed, "" if it was not
    works               by situation (`drafts.planned.situation`), what the rounds that began in it
                        did; outside_seconds, their seconds outside the models
    """

    setting: str
    sampler: Sampler
    prompt: str
    tokens: int
    rounds: int
    method: str = ""
    runtime: str = ""
    rule: str = "look_up"
    timed_tokens: int = 0
    proposed: int = 0
    accepted: int = 0
    tried: int = 0
    repetition: float | None = None
    stop: str = ""
    passes: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    context_tokens: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None
    prefill_seconds: float | None = None
    overhead_seconds: float | None = None
    model_seconds: Mapping[str, float] = field(default_factory=dict)
    loops: bool = False
    same: bool | None = None
    margin: float | None = None
    rounding: bool | None = None
    load: float | None = None
    cores: float | None = None
    date: str = ""
    works: Mapping[int, Work] = field(default_factory=dict)
    outside_seconds: Mapping[int, float] = field(default_factory=dict)

    def row(self) -> Row:
        """The trial as JSON can hold it."""
        works = [
            [place, work.tokens, work.rounds, work.guesses, [*work.passes.items()], work.target]
            for place, work in self.works.items()
        ]
        return {
            **vars(self),
            "sampler": asdict(self.sampler),
            "works": works,
            "outside_seconds": [*self.outside_seconds.items()],
        }

    @classmethod
    def from_row(cls, row: Row) -> "Trial":
        """The trial that `row` gave, before or after it was JSON."""
        works = {}
        for place, tokens, rounds, guesses, passes, target in row["works"]:
            by_pass: dict[Pass, float] = {tuple(key): count for key, count in passes}
            works[place] = Work(tokens, rounds, guesses, by_pass, target)
        read = {
            "sampler": Sampler(**row["sampler"]),
            "works": works,
            "outside_seconds": dict(row["outside_seconds"]),
        }
        return cls(**row | read)


def trial_of(
    setting: Setting, prompt: Prompt, generation: Generation, target: str = "target"
) -> Trial:
    """A generation as a trial; of the model called `target`, which makes no pass along a text, a
    pass over each round's tree is counted, without seconds.
    """
    rounds = generation.rounds
    used = {name: [played.usage[name] for played in rounds] for name in rounds[0].usage}
    passes = {target: [1] * len(rounds)}
    rows = {target: [len(played.tree) for played in rounds]}
    for name, usages in used.items():  # also the target's own, where it makes passes
        passes[name] = [usage.passes for usage in usages]
        rows[name] = [usage.rows for usage in usages]
    before = [played.tree.root_position for played in rounds]
    return Trial(
        setting=setting.name,
        sampler=setting.sampler,
        rule=setting.rule_name,
        prompt=prompt.name,
        tokens=len(generation.tokens),
        rounds=len(rounds),
        proposed=sum(played.proposed for played in rounds),
        accepted=sum(played.accepted for played in rounds),
        tried=sum(played.tried for played in rounds),
        repetition=repetition(generation.tokens),
        stop=generation.stop,
        passes={name: sum(counts) for name, counts in passes.items()},
        rows={name: sum(counts) for name, counts in rows.items()},
        context_tokens={name: _dot(counts, before) for name, counts in passes.items()},
        seconds=sum(played.seconds for played in rounds),
        prefill_seconds=sum(usage.seconds for usage in generation.prefill.values()),
        overhead_seconds=sum(played.overhead_seconds for played in rounds),
        model_seconds={name: sum(one.seconds for one in usages) for name, usages in used.items()},
    )


def _dot(counts: Sequence[int], lengths: Sequence[int]) -> int:
    return sum(count * length for count, length in zip(counts, lengths, strict=True))


def counted_trial(
    named: tuple[str, str],
    sampler: Sampler,
    prompt: Prompt,
    rounds: Mapping[int, Sequence[Round]],
    target: str,
) -> Trial:
    """The rounds of one method on one prompt as a trial with its `works`.

    named     the method and the setting
    rounds    by the situation in which they began
    target    the name of the model whose passes verify
    """
    method, setting = named
    every = [one for some in rounds.values() for one in some]
    return Trial(
        method=method,
        setting=setting,
        sampler=sampler,
        prompt=prompt.name,
        tokens=sum(len(one.emitted) for one in every),
        rounds=len(every),
        works={place: work_of(some, target) for place, some in rounds.items()},
        outside_seconds={
            place: sum(one.overhead_seconds for one in some) for place, some in rounds.items()
        },
    )


def work_of(rounds: Sequence[Round], target: str) -> Work:
    """A pass of the target over each round's tree, and the drafts' passes with their mean rows."""
    passes: dict[Pass, float] = defaultdict(float)
    for played in rounds:
        before = played.tree.root_position
        passes[target, len(played.tree), before] += 1
        for name, used in played.usage.items():
            if name != target and used.passes:
                passes[name, max(1, round(used.rows / used.passes)), before] += used.passes
    tokens = sum(len(played.emitted) for played in rounds)
    guesses = sum(played.proposed for played in rounds)
    return Work(float(tokens), float(len(rounds)), float(guesses), dict(passes), target)


def whole(trials: pd.DataFrame) -> Work:
    """The work of all rows together."""
    return reduce(add, trials.work)


def trial_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """A row per trial: its fields; the sampler's temperature, top_k and top_p; and per model its
    `_passes`, `_rows`, `_context_tokens` and `_seconds`. `works` are left out.
    """
    return pd.DataFrame(map(_columns, trials))


def _columns(trial: Trial) -> Row:
    return {
        "method": trial.method,
        "runtime": trial.runtime,
        "setting": trial.setting,
        **asdict(trial.sampler),
        "rule": trial.rule,
        "prompt": trial.prompt,
        "tokens": trial.tokens,
        "timed_tokens": trial.timed_tokens,
        "rounds": trial.rounds,
        "proposed": trial.proposed,
        "accepted": trial.accepted,
        "tried": trial.tried,
        "repetition": _number(trial.repetition),
        "stop": trial.stop,
        **{f"{name}_passes": count for name, count in trial.passes.items()},
        **{f"{name}_rows": count for name, count in trial.rows.items()},
        **{f"{name}_context_tokens": count for name, count in trial.context_tokens.items()},
        "seconds": _number(trial.seconds),
        "prefill_seconds": _number(trial.prefill_seconds),
        "overhead_seconds": _number(trial.overhead_seconds),
        **{f"{name}_seconds": seconds for name, seconds in trial.model_seconds.items()},
        "loops": trial.loops,
        "same": trial.same,
        "margin": _number(trial.margin),
        "rounding": trial.rounding,
        "load": _number(trial.load),
        "cores": _number(trial.cores),
        "date": trial.date,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def sweep_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """The columns of `trial_table` that a sweep has, its settings called `draft`."""
    table = trial_table(trials).rename(columns={"setting": "draft"})
    raced = ["method", "runtime", "timed_tokens", "loops", "same", "margin", "rounding", "load"]
    raced += ["cores", "date"]
    return table.drop(columns=raced)


def work_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """A row per trial and situation in which some of its rounds began: method, setting, prompt,
    situation, work, and outside, the seconds outside the models (NaN where another machine
    counted).
    """
    return pd.DataFrame(
        {
            "method": trial.method,
            "setting": trial.setting,
            "prompt": trial.prompt,
            "situation": place,
            "work": work,
            "outside": trial.outside_seconds.get(place, math.nan),
        }
        for trial in trials
        for place, work in trial.works.items()
    )
