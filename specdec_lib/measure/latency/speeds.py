"""Settings by the clock: some thirty drafts on held-out prompts beside what development prompts and
latency tables said of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.intervals import bootstrap, named_interval, paired_bootstrap
from specdec_lib.measure.latency.curves import curves, pass_tables
from specdec_lib.measure.latency.passes import ROWS, one_repeat
from specdec_lib.measure.latency.predicting import Observation, observe, predict_speeds
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, ours
from specdec_lib.measure.race.harness import race, target_texts
from specdec_lib.measure.replay.recording import format_matrix
from specdec_lib.measure.sweep.stacks import scout
from specdec_lib.workload import Ladder, Prompt, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

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
    """Plain decoding, chains, trees, staged trees and cascades of the ladder's models, by name;
    small and large ones, good and bad.
    """
    match, middle = (ladder.match(name, sampler) for name in ("draft", "middle"))
    chains = {
        f"chain of {length}": ChainDraft(ladder.draft, length, match=match)
        for length in (1, 2, 3, 4, 6, 8)
    } | {
        f"chain of {length}, middle": ChainDraft(ladder.middle, length, match=middle)
        for length in (2, 4)
    }
    trees = {
        f"tree of {budget}, depth {depth}": TreeDraft(
            ladder.draft, budget=budget, depth=depth, match=match
        )
        for budget, depth in TREES
    }
    small, large = (scout(ladder, sampler, budget=size, depth=5) for size in (4, 8))
    staged = {name: StagedTree(trees[name], small, guided=1) for name in [*trees][2:5]}
    staged["chain of 4"] = StagedTree(chains["chain of 4"], large, guided=1)
    copies = MaxGram(None, 4)
    cascades = {one: from_matrix((ladder.draft, copies), one, match=match) for one in MATRICES}
    cascades[DEEPER] = from_matrix((ladder.middle, ladder.draft, copies), DEEPER)
    named = {"chain": chains, "tree": trees}
    named["staged"] = {f"staged {name}": draft for name, draft in staged.items()}
    named["cascade"] = {
        f"cascade {format_matrix(matrix)}": draft for matrix, draft in cascades.items()
    }
    return {AUTOREGRESSIVE: Kinded(AUTOREGRESSIVE, NoDraft())} | {
        name: Kinded(kind, draft)
        for kind, drafts in named.items()
        for name, draft in drafts.items()
    }


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
    max_new_tokens: Integral = 64,
    progress: bool = True,
) -> "DataFrame":
    """All drafts race on every prompt: draft, kind, prompt, tokens, rounds, seconds."""
    import pandas as pd
    from tqdm.auto import tqdm

    timings = _race(ladder, drafts, sampler, prompts, seed, max_new_tokens)
    bar = tqdm(timings, total=len(prompts), desc="clock", disable=not progress, mininterval=1)
    return pd.DataFrame(row for rows in bar for row in rows)


def race_predictions(
    ladder: Ladder,
    drafts: Mapping[str, Kinded],
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    *,
    rows: Sequence[Integral] = ROWS,
    contexts: Sequence[Integral] = (64, 256),
    seed: int = 0,
    max_new_tokens: Integral = 64,
    progress: bool = True,
) -> "tuple[DataFrame, DataFrame]":
    """What development prompts and pass times say of every draft (`predict_speeds`), and what the
    clock says on held-out ones (`measure_speeds`).

    In turn, so that both see the same machine: a development prompt, one repeat of the curves of
    all models, a held-out prompt, and so on, as many of each as there are held-out prompts;
    development prompts begin anew where there are fewer. The prediction knows nothing of the
    held-out ones.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    found, passes = [], []
    observations: dict[str, Observation] = {}
    timings = _race(ladder, drafts, sampler, held_out, seed, max_new_tokens)
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
    return prediction, pd.DataFrame(found)


def beside_predictions(prediction: "DataFrame", rows: "DataFrame") -> "DataFrame":
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


def measured_speed_ups(rows: "DataFrame") -> "DataFrame":
    """Per draft of `measure_speeds`: draft, kind, measured tokens per second, low, high; speed_up
    over plain decoding on the same prompts, speed_up_low, speed_up_high; tokens_per_round, prompts.

    Intervals are 95 %, by bootstrap over prompts.
    """
    import pandas as pd

    plain = rows[rows.draft == AUTOREGRESSIVE].set_index("prompt")
    found = []
    for (name, kind), group in rows.groupby(["draft", "kind"], sort=False):
        own = group.set_index("prompt")
        base = plain.loc[own.index]
        row = {"draft": name, "kind": kind}
        row["measured"], row["low"], row["high"] = bootstrap(own.tokens, own.seconds)
        gain = paired_bootstrap(own.tokens, own.seconds, base.tokens, base.seconds)
        row |= named_interval("speed_up", gain)
        row["tokens_per_round"] = own.tokens.sum() / own["rounds"].sum()
        found.append(row | {"prompts": len(own)})
    return pd.DataFrame(found)


def _race(
    ladder: Ladder,
    drafts: Mapping[str, Kinded],
    sampler: Sampler,
    prompts: Sequence[Prompt],
    seed: int,
    max_new_tokens: Integral,
) -> Iterator[list[dict[str, object]]]:
    """The rows of each prompt, in the order of the drafts."""
    contenders = [
        ours(ladder.target, one.draft, sampler, method=one.kind, setting=name)
        for name, one in drafts.items()
    ]
    texts = target_texts(ladder, prompts, sampler, tokens=int(max_new_tokens), seed=seed)
    for timings in race(contenders, texts, ladder.target, seed=seed):
        yield [
            {
                "draft": one.setting,
                "kind": one.method,
                "prompt": one.prompt,
                "tokens": one.tokens,
                "rounds": one.rounds,
                "seconds": one.seconds,
            }
            for one in timings
        ]
