"""Settings by the clock: some thirty drafts on held-out prompts, beside the tokens per second that
development prompts and measured pass times predict.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.contenders import our_contenders, time_rounds
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency.passes import CONTEXTS, ROWS, curves, one_repeat, pass_tables
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.settings.latency import latency_settings
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.trial import Trial, counted_trial, trial_table, whole, work_table
from specdec_lib.theory import Overhead, PassTable
from specdec_lib.workload import DOMAINS, SPLITS, Ladder, Prompt, load_prompts, seeds

BEFORE = (64, 256)  # tokens before the passes that predict


@dataclass(frozen=True)
class Ranges:
    """What to measure over.

    rows, contexts    of the curves, and `repeats` passes per place
    temperatures      of the first domain's sweep; the other domains are swept at the first one
    domains           of the sweeps; all else is on prompts of the first
    prompts           of each split, for speeds; half of them for sweeps, a quarter for the ledger
    settings          the drafts whose speeds are predicted and measured
    """

    rows: Sequence[int] = ROWS
    contexts: Sequence[int] = CONTEXTS
    repeats: int = 15
    temperatures: Sequence[float] = (0.0, 0.5, 1.0, 1.5)
    domains: Sequence[str] = DOMAINS
    prompts: int = 20
    max_new_tokens: int = 64
    settings: Callable[[Ladder, Sampler], Sequence[Setting]] = latency_settings
    seed: int = 0
    samplers: Sequence[Sampler] = (Sampler(0.0), Sampler(1.0))

    @property
    def limits(self) -> dict[str, int]:
        return {"seed": self.seed, "tokens": self.max_new_tokens}


def time_settings(
    ladder: Ladder, sampler: Sampler, ranges: Ranges, *, quiet: Quiet, keep: bool, progress: bool
) -> pd.DataFrame:
    """`beside_predictions` of what development prompts and pass times say of every draft, and what
    the clock says on held-out ones; `cores` is the mean of all that was timed.

    In turn, so that both see the same machine: a development prompt, one repeat of the curves of
    all models, a held-out prompt, and so on.

    keep    whether finished turns are kept, and read by another run
    """
    settings = ranges.settings(ladder, sampler)
    splits = [load_prompts(ranges.domains[0], one, ranges.prompts) for one in SPLITS]
    same = (
        machine_name(),
        quiet,
        sampler,
        settings,
        *splits,
        ranges.rows,
        ranges.limits,
        ladder.models,
    )
    kept = RowCache(cache_folder() / "latency" / fingerprint(*same) if keep else None)
    development, held_out = splits
    due = [one for turn, one in enumerate(held_out) if not kept.read(f"turn {turn}")]
    racing = our_contenders(ladder.target, settings)
    tokens, seed = ranges.max_new_tokens, ranges.seed
    # one race of all turns: contenders are warmed up once
    raced = race_prompts(racing, ladder, due, tokens=tokens, seed=seed, quiet=quiet)
    rows: list[Row] = []
    for turn in tqdm(range(len(held_out)), desc="clock", disable=not progress, mininterval=1):
        own = development[turn % len(development)]
        run = partial(_one_turn, ladder, settings, own, ranges, turn, quiet, raced)
        rows += kept.rows(f"turn {turn}", run)
    counted, found = (
        [Trial.from_row(one) for row in rows for one in row[name]] for name in ("counted", "raced")
    )
    tables = pass_tables(curves(pd.DataFrame(one for row in rows for one in row["passes"])))
    speeds = trial_table(found)
    cores = [speeds.cores.mean(), *(row["cores"] for row in rows)]
    both = beside_predictions(predict_speeds(work_table(counted), tables), speeds)
    return both.assign(cores=sum(cores) / len(cores))


def _one_turn(
    ladder: Ladder,
    settings: Sequence[Setting],
    own: Prompt,
    ranges: Ranges,
    turn: int,
    quiet: Quiet,
    raced: Iterator[list[Trial]],
) -> list[Row]:
    """A turn of `time_settings` as one row: trials that were counted on a development prompt,
    passes, and the trials of the next prompt of the race.
    """

    def timed() -> tuple[list[Row], list[Row]]:
        counted = [_counted(ladder, one, own, ranges).row() for one in settings]
        return counted, [*one_repeat(ladder.models, ranges.rows, BEFORE, turn)]

    watched = quiet.timed(timed)
    counted, passes = watched.found
    both = {"counted": counted, "passes": passes, "cores": watched.cores}
    return [both | {"raced": [one.row() for one in next(raced)]}]


def _counted(ladder: Ladder, setting: Setting, prompt: Prompt, ranges: Ranges) -> Trial:
    """What the rounds of one setting did on a development prompt, whatever they began in."""
    chance = Chance(seeds([prompt], ranges.seed)[0], setting.sampler)
    limits = {"max_new_tokens": ranges.max_new_tokens, "stop_tokens": ladder.stop_tokens}
    done, _ = time_rounds(ladder.target, setting.draft, ladder.encode(prompt), chance, **limits)
    named = (setting.method, setting.name)
    return counted_trial(named, setting.sampler, prompt, {0: done}, ladder.target.name)


def beside_predictions(prediction: pd.DataFrame, timings: pd.DataFrame) -> pd.DataFrame:
    """A row per draft: the columns of `predict_speeds`, its tokens per round as
    foreseen_tokens_per_round, and of `measured_speed_ups`; predicted_speed_up; error, predicted ÷
    measured − 1.  Raises ValueError if a predicted draft, or plain decoding, was not measured.
    """
    measured = measured_speed_ups(timings).drop(columns="kind")
    if missing := sorted({AUTOREGRESSIVE, *prediction.draft} - set(measured.draft)):
        raise ValueError(f"no measurement of {', '.join(missing)}")
    plain = prediction.predicted[prediction.draft == AUTOREGRESSIVE].iloc[0]
    found = prediction.rename(columns={"tokens_per_round": "foreseen_tokens_per_round"})
    both = found.merge(measured, on="draft", validate="1:1")
    gain = both.predicted / plain
    error = both.predicted / both.measured - 1
    return both.assign(predicted_speed_up=gain, error=error)


def measured_speed_ups(timings: pd.DataFrame) -> pd.DataFrame:
    """Per setting and method, as draft and kind: measured tokens per second, low, high, prompts;
    speed_up over plain decoding on the same prompts, speed_up_low, speed_up_high; tokens_per_round.

    timings    a row per trial
    """
    rows = timings.rename(columns={"setting": "draft", "method": "kind"})
    by = ("draft", "kind")
    sides = ("tokens", "seconds")
    found = ratios(rows, *sides, by=by).rename(columns={"value": "measured"})
    gain = ratios(rows.assign(sampling=""), *sides, by=by, baseline=AUTOREGRESSIVE)
    found[["speed_up", "speed_up_low", "speed_up_high"]] = gain[["value", "low", "high"]]
    return found.assign(tokens_per_round=ratios(rows, "tokens", "rounds", by=by).value)


def fit_overheads(trials: pd.DataFrame) -> dict[str, Overhead]:
    """Per method the seconds outside the models, linear in rounds, guesses and draft passes: least
    squares of the relative error over its settings, none below 0.

    trials    rows with method, setting, work and outside; those without the last are left out
    """
    found = {}
    for method, own in trials.dropna(subset=["outside"]).groupby("method", sort=False):
        settings = [one for _, one in own.groupby("setting", sort=False)]
        works = [(one.rounds, one.guesses, one.draft_passes) for one in map(whole, settings)]
        seconds = np.array([max(one.outside.sum(), 1e-9) for one in settings])
        fitted, _ = nnls(np.array(works, dtype=float) / seconds[:, None], np.ones(len(seconds)))
        found[method] = Overhead(*fitted.tolist())
    return found


def predict_speeds(trials: pd.DataFrame, tables: Mapping[str, PassTable]) -> pd.DataFrame:
    """Tokens per second of each setting, from its passes and tokens on development prompts: draft,
    kind, predicted, tokens_per_round, host_share (of the seconds, outside the models), and
    round_overhead, guess_overhead and pass_overhead, fitted to all settings of its method.

    trials    as of `fit_overheads`; a setting is a draft, and its method the kind
    tables    pass seconds by model, as the models count them themselves
    """
    overheads = fit_overheads(trials)
    rows = []
    for (kind, name), own in trials.groupby(["method", "setting"], sort=False):
        work = whole(own)
        overhead = overheads[str(kind)]
        seconds = work.seconds(tables, overhead)
        rows.append(
            {"draft": name, "kind": kind, "predicted": work.tokens / seconds}
            | {"tokens_per_round": work.tokens_per_round}
            | {"host_share": 1 - work.model_seconds(tables) / seconds}
            | {"round_overhead": overhead.round, "guess_overhead": overhead.guess}
            | {"pass_overhead": overhead.draft_pass}
        )
    return pd.DataFrame(rows)
