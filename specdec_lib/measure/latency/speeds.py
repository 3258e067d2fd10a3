"""Settings by the clock: some thirty drafts on held-out prompts beside what development prompts and
latency tables said of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.latency.curves import curves, pass_tables
from specdec_lib.measure.latency.passes import ROWS, one_repeat
from specdec_lib.measure.latency.predicting import Observation, observe, predict_speeds
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.harness import Timing, race_drafts
from specdec_lib.measure.replay.recording import format_matrix
from specdec_lib.measure.sweep.ratios import ratios
from specdec_lib.measure.sweep.stacks import scout
from specdec_lib.workload import Ladder, Prompt, seeds

TREES = ((2, 2), (4, 3), (8, 4), (12, 6), (16, 6), (32, 8))  # budget and depth
MATRICES = (((1, 4), (0, 4)), ((2, 4), (0, 4)), ((1, 8), (0, 4)), ((3, 4), (0, 4)))
DEEPER = ((1, 0, 4), (0, 2, 4), (0, 0, 4))
FEW = (
    AUTOREGRESSIVE,
    "chain of 3",
    "tree of 8, depth 4",
    "staged tree of 8, depth 4",
    "cascade 1 4 / 0 4",
)


class Kinded(NamedTuple):
    """A draft, and its kind: drafts of one kind do the same things more or less often."""

    kind: str
    draft: Draft


def grid(ladder: Ladder, sampler: Sampler) -> dict[str, Kinded]:
    """Plain decoding, chains, trees, staged trees and cascades, by name; small and large ones."""
    match, middle = (ladder.match(name, sampler) for name in ("draft", "middle"))
    found = {AUTOREGRESSIVE: Kinded(AUTOREGRESSIVE, NoDraft())}

    def add(kind: str, name: str, draft: Draft) -> None:
        found[name] = Kinded(kind, draft)

    for length in (1, 2, 3, 4, 6, 8):
        add("chain", f"chain of {length}", ChainDraft(ladder.draft, length, match=match))
    for length in (2, 4):
        chain = ChainDraft(ladder.middle, length, match=middle)
        add("chain", f"chain of {length}, middle", chain)
    for budget, depth in TREES:
        tree = TreeDraft(ladder.draft, budget=budget, depth=depth, match=match)
        add("tree", f"tree of {budget}, depth {depth}", tree)
    small, large = (scout(ladder, sampler, budget=size, depth=5) for size in (4, 8))
    fed = {f"tree of {budget}, depth {depth}": small for budget, depth in TREES[2:5]}
    for name, guide in (fed | {"chain of 4": large}).items():
        add("staged", f"staged {name}", StagedTree(found[name].draft, guide, guided=1))
    copies = MaxGram(None, 4)
    for matrix in MATRICES:
        cascade = from_matrix((ladder.draft, copies), matrix, match=match)
        add("cascade", f"cascade {format_matrix(matrix)}", cascade)
    deeper = from_matrix((ladder.middle, ladder.draft, copies), DEEPER)
    add("cascade", f"cascade {format_matrix(DEEPER)}", deeper)
    return found


def few(ladder: Ladder, sampler: Sampler) -> dict[str, Kinded]:
    """One setting of each kind, for sweeps over temperatures and domains."""
    every = grid(ladder, sampler)
    return {name: every[name] for name in FEW}


def measure_speeds(
    ladder: Ladder,
    drafts: Mapping[str, Kinded],
    sampler: Sampler,
    prompts: Sequence[Prompt],
    *,
    seed: int = 0,
    max_new_tokens: int = 64,
    progress: bool = True,
) -> pd.DataFrame:
    """All drafts race on every prompt: draft, kind, prompt, tokens, rounds, seconds."""
    limits = {"seed": seed, "tokens": max_new_tokens}
    timings = race_drafts(ladder, drafts, sampler, prompts, **limits)
    bar = tqdm(timings, "clock", len(prompts), disable=not progress, mininterval=1)
    return _rows(one for made in bar for one in made)


def race_predictions(
    ladder: Ladder,
    drafts: Mapping[str, Kinded],
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    *,
    rows: Sequence[int] = ROWS,
    contexts: Sequence[int] = (64, 256),
    seed: int = 0,
    max_new_tokens: int = 64,
    progress: bool = True,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What development prompts and pass times say of every draft (`predict_speeds`), and what the
    clock says on held-out ones (`measure_speeds`).

    In turn, so that both see the same machine: a development prompt, one repeat of the curves of
    all models, a held-out prompt, and so on, as often as there are held-out prompts.
    """
    found, passes = [], []
    observations: dict[str, Observation] = {}
    asked = (ladder, drafts, sampler, held_out)
    timings = race_drafts(*asked, tokens=max_new_tokens, seed=seed)
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    own = seeds(development, seed)
    for number in tqdm(range(len(held_out)), desc="clock", disable=not progress, mininterval=1):
        place = number % len(development)
        prompt, chance = ladder.encode(development[place]), Chance(own[place], sampler)
        for name, one in drafts.items():
            seen = observe(ladder.target, one.draft, prompt, chance, **limits)
            observations[name] = observations[name] + seen if name in observations else seen
        passes += one_repeat(ladder.models, rows, contexts, number)
        found += next(timings)
    kinds = {name: one.kind for name, one in drafts.items()}
    prediction = predict_speeds(observations, kinds, pass_tables(curves(pd.DataFrame(passes))))
    return prediction, _rows(found)


def beside_predictions(prediction: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """A row per draft: what was predicted, and by the clock tokens per second and the speed-up over
    plain decoding, with intervals over prompts.

    The columns are: draft, kind, predicted, predicted_speed_up; measured, low, high; speed_up,
    speed_up_low, speed_up_high; tokens_per_round, prompts; error, predicted ÷ measured − 1;
    foreseen_tokens_per_round; host_share and the overheads, as `predict_speeds`.
    """
    if missing := {AUTOREGRESSIVE, *prediction.draft} - set(rows.draft):
        raise ValueError(f"no measurement of {', '.join(sorted(missing))}")
    plain = prediction.predicted[prediction.draft == AUTOREGRESSIVE].iloc[0]
    found = prediction.rename(columns={"tokens_per_round": "foreseen_tokens_per_round"})
    found.insert(3, "predicted_speed_up", found.predicted / plain)
    measured = measured_speed_ups(rows).drop(columns="kind")
    both = found.merge(measured, on="draft", how="left")
    both["error"] = both.predicted / both.measured - 1
    first = ["draft", "kind", "predicted", "predicted_speed_up", *measured.columns[1:], "error"]
    return both[first + [name for name in found if name not in first]]


def measured_speed_ups(rows: pd.DataFrame) -> pd.DataFrame:
    """Per draft of `measure_speeds`: draft, kind, measured tokens per second, low, high; speed_up
    over plain decoding on the same prompts, speed_up_low, speed_up_high; tokens_per_round, prompts.
    """
    by, sides = ("draft", "kind"), ("tokens", "seconds")
    found = ratios(rows, *sides, by=by).rename(columns={"value": "measured"})
    gain = ratios(rows.assign(sampling=""), *sides, by=by, baseline=AUTOREGRESSIVE)
    found[["speed_up", "speed_up_low", "speed_up_high"]] = gain[["value", "low", "high"]]
    found["tokens_per_round"] = ratios(rows, "tokens", "rounds", by=by).value
    return found[[name for name in found if name != "prompts"] + ["prompts"]]


def _rows(timings: Iterable[Timing]) -> pd.DataFrame:
    names = {"setting": "draft", "method": "kind"}
    table = pd.DataFrame(map(vars, timings)).rename(columns=names)
    return table[["draft", "kind", "prompt", "tokens", "rounds", "seconds"]]
