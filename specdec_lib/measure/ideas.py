"""What each idea of both papers is worth by the clock, by itself: fourteen methods with one draft
model, each at the setting that is fastest on development prompts, on the same held-out prompts.

A table that is half finished goes on: rows of the same code and drafts are not timed again.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.contenders import Contender, our_contenders
from specdec_lib.measure.fingerprints import short_digest
from specdec_lib.measure.idea_tuning import all_among, candidate_names, tuned_settings
from specdec_lib.measure.machine import clocked_file, clocked_here, machine_name
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.settings.ideas import (
    AUTOREGRESSIVE,
    METHODS,
    Candidate,
    chosen_settings,
    idea_settings,
)
from specdec_lib.measure.settings.ladder_drafts import EDITIONS, racing_ladder
from specdec_lib.measure.settings.setting import GREEDY, TOP_50
from specdec_lib.measure.trial import Trial
from specdec_lib.theory import Work
from specdec_lib.workload import Ladder, Prompt

SAMPLERS = (GREEDY, TOP_50)
COLUMNS = """edition temperature top_k domain prompt method setting tokens rounds passes context
    seconds outside repetition cores date model max_new_tokens drafts threads state machine
    versions""".split()
WHERE = ["edition", "temperature", "top_k"]


@dataclass(frozen=True)
class IdeasPlan:
    """What is raced, and how.

    model      of the ladder that drafts
    tokens     new ones per prompt, at most
    retune     choose among today's candidates: rows of other settings are not known
    again      race the prompts of `disturbed` rows again, with this as its `times`; 0 for none

    Raises ValueError if `again` is neither 0 nor above 1.
    """

    editions: Sequence[str] = tuple(EDITIONS)
    model: str = "middle"
    tokens: int = 128
    seed: int = 0
    retune: bool = False
    again: float = 0.0

    def __post_init__(self) -> None:
        if self.again != 0 and not self.again > 1:
            raise ValueError(f"again is 0, or above 1, got {self.again:g}")


def ideas_file(machine: str, *, published: bool = False) -> Path:
    """Where the race of a machine is stored; published prompts are not in the repository."""
    return clocked_file(f"ideas{'_published' if published else ''}", machine)


def race_ideas(
    place: Path | None, prompts: Sequence[Prompt], plan: IdeasPlan, quiet: Quiet
) -> pd.DataFrame:
    """What the table at a place is to be: what it holds, with these prompts raced that it lacks.
    Settings that were tuned for another stored table of this machine are taken over.
    """
    stored = [ideas_file(machine_name(), published=published) for published in (False, True)]
    before = read_finished(place)
    own = None if place is None else place.resolve()  # it may be named from the present folder
    others = read_finished(*(one for one in stored if one.resolve() != own))
    finished = pd.concat([others, before])  # in this order: the table's own settings win
    raced = measure_ideas(prompts, plan, quiet, finished)
    return with_others(pd.concat(raced), before)


def measure_ideas(
    prompts: Sequence[Prompt], plan: IdeasPlan, quiet: Quiet, finished: pd.DataFrame
) -> Iterator[pd.DataFrame]:
    """Per edition of the target and sampler a row per prompt and method: its setting, rounds,
    passes (by model, as rows:passes), their seconds and those outside the models.

    finished    rows of an earlier run; those of today's code, drafts, machine and plan are given
                back as they are, and their settings are not tuned again
    """
    quiet.check()
    same = _same(plan)
    known = finished
    for name, value in same.items():
        known = known[known[name] == value]
    known = known.reset_index(drop=True)
    late = disturbed(known, plan.again).index if plan.again else known.index[:0]
    for edition in plan.editions:
        ladder = racing_ladder(edition)
        for sampler in SAMPLERS:
            place = {"edition": edition, "temperature": sampler.temperature}
            rows = known[(known.edition == edition) & (known.temperature == sampler.temperature)]
            slow = rows.index.isin(late)
            found = _one_group(ladder, sampler, prompts, plan, quiet, rows, {*rows.prompt[slow]})
            yield found.assign(**place, top_k=sampler.top_k or 0, **same)[COLUMNS]


def disturbed(rows: pd.DataFrame, times: float) -> pd.DataFrame:
    """The rows of plain decoding that took more than `times` the lower quartile of its seconds per
    token with the same edition of the target, over all samplers and prompts: something slowed the
    machine that takes no processor time here, such as a neighbour that uses its memory; or their
    contexts are long.
    """
    plain = rows[rows.method == AUTOREGRESSIVE]
    pace = plain.seconds / plain.tokens
    usual = pace.groupby(plain.edition).transform(lambda own: own.quantile(0.25))
    return plain[pace > times * usual]


def _same(plan: IdeasPlan) -> dict[str, str | int]:
    """What has to be the same for rows to stand side by side."""
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    return {
        "model": plan.model,
        "max_new_tokens": plan.tokens,
        "drafts": "int8",
        **clocked_here(),
        "versions": versions,
    }


def _one_group(
    ladder: Ladder,
    sampler: Sampler,
    prompts: Sequence[Prompt],
    plan: IdeasPlan,
    quiet: Quiet,
    known: pd.DataFrame,
    late: Set[str],
) -> pd.DataFrame:
    """The rows of one edition and sampler: those that are known for a prompt, else raced; prompts
    whose names are in `late` are raced again.
    """
    sampling = sampling_of(sampler.temperature, sampler.top_k)
    named = f"{ladder.target.runtime}, {sampling}"
    candidates = idea_settings(ladder, sampler, plan.model)
    chosen = {} if plan.retune else dict(zip(known.method, known.setting, strict=True))
    if not all_among(candidates, chosen):
        limits = {"tokens": plan.tokens, "seed": plan.seed}
        tuned = partial(tuned_settings, ladder, sampler, candidates, quiet, **limits)
        [chosen] = RowCache(_folder(plan, named, candidate_names(candidates))).rows("chosen", tuned)
    racing = _contenders(ladder, candidates, chosen)
    known = known[known.setting == known.method.map(chosen)]
    known = known.drop_duplicates(["prompt", "method"], keep="last")
    whole = known.groupby("prompt").filter(lambda rows: len(rows) == len(METHODS))
    whole = whole[~whole.prompt.isin(late)]
    asked = {prompt.name: prompt.domain for prompt in prompts}
    due = [prompt for prompt in prompts if prompt.name not in set(whole.prompt)]
    folder = _folder(plan, named, sorted(chosen.items()))
    for prompt in due:
        kept = RowCache(folder).read(key_of(prompt)) if prompt.name in late else []
        if kept and {round(row["seconds"], 6) for row in kept} <= {*known.seconds.round(6)}:
            RowCache(folder).write(key_of(prompt), [])  # else it was raced again already
    limits = {"tokens": plan.tokens, "seed": plan.seed, "folder": folder, "quiet": quiet}
    raced = race_prompts(racing, ladder, tqdm(due, named, mininterval=1), **limits)
    new = pd.DataFrame([_row(trial) for trials in raced for trial in trials])
    if len(new):
        whole = pd.concat([whole, new.assign(domain=new.prompt.map(asked))])
    whole = whole[whole.prompt.isin(asked)]
    return whole.sort_values("prompt", key=lambda names: names.map([*asked].index), kind="stable")


def _folder(plan: IdeasPlan, named: str, settings: object) -> Path:
    """Where rows that depend on these settings are kept."""
    digest = short_digest(repr((_same(plan), plan.seed, named, settings)))
    return cache_folder() / "ideas" / digest


def _contenders(
    ladder: Ladder, candidates: Mapping[str, list[Candidate]], chosen: Mapping[str, str]
) -> list[Contender]:
    """One contender per method, in the order of `METHODS`."""
    settings = chosen_settings(candidates, {method: chosen[method] for method in METHODS})
    return our_contenders(ladder.target, settings, ladder.target.runtime)


def _row(trial: Trial) -> Row:
    return {
        "prompt": trial.prompt,
        "method": trial.method,
        "setting": trial.setting,
        "tokens": trial.tokens,
        "rounds": trial.rounds,
        "passes": _passes(trial.works[0]),
        "context": _context(trial.works[0]),
        "seconds": trial.seconds,
        "outside": trial.outside_seconds[0],
        "repetition": trial.repetition,
        "cores": trial.cores,
        "date": trial.date,
    }


def _passes(work: Work) -> str:
    """Passes by model and rows, such as "target 5:20 9:44; middle 1:132"."""
    found: dict[str, dict[int, float]] = {}
    for (model, rows, _), count in work.passes.items():
        own = found.setdefault(model, {})
        own[rows] = own.get(rows, 0) + count
    return "; ".join(
        f"{model} {' '.join(f'{rows}:{count:g}' for rows, count in sorted(own.items()))}"
        for model, own in found.items()
    )


def _context(work: Work) -> int:
    """Tokens before a pass of the target, on average."""
    own = {place: count for place, count in work.passes.items() if place[0] == work.target}
    return round(sum(context * n for (_, _, context), n in own.items()) / sum(own.values()))


def read_finished(*places: Path | None) -> pd.DataFrame:
    """The rows of earlier runs; raises ValueError for a table of another form."""
    tables = [pd.DataFrame({name: np.array([], dtype=object) for name in COLUMNS})]
    for place in places:
        if place is not None and place.is_file():
            found = pd.read_csv(place)
            missing = sorted(set(COLUMNS) - set(found.columns))
            if missing:
                raise ValueError(
                    f"{place} is no table of `specdec measure ideas`: it lacks {missing[0]}"
                )
            tables.append(found)
    return pd.concat(tables)


def with_others(found: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """What was found, and of the rows before those of other prompts in the same state with the same
    settings, and those of editions and samplers that were not raced now.
    """
    keys = ["edition", "temperature"]
    now = pd.MultiIndex.from_frame(found[keys].drop_duplicates())
    raced = pd.MultiIndex.from_frame(before[keys]).isin(now)
    same = [*keys, "method", "setting"]
    same += ["state", "model", "max_new_tokens", "threads", "machine", "versions"]
    current = pd.MultiIndex.from_frame(found[same].drop_duplicates())
    other = ~pd.MultiIndex.from_frame(before[same]).isin(current)
    prompts = [before[key] for key in [*keys, "prompt"]]
    equal = ~pd.Series(other, before.index).groupby(prompts).transform("any")
    others = before[(~raced | equal) & ~(raced & before.prompt.isin(found.prompt))]
    both = pd.concat([found, others]) if len(others) else found
    return both.sort_values(keys, kind="stable")  # pages show them in the table's order
