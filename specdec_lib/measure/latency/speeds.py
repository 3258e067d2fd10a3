"""Settings by the clock: some thirty drafts on held-out prompts beside what development prompts and
latency tables said of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.intervals import bootstrap, paired_bootstrap
from specdec_lib.measure.latency.curves import ROWS, medians, tables
from specdec_lib.measure.latency.passes import one_repeat
from specdec_lib.measure.latency.predicting import Observation, observe, predict_speeds
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, ours
from specdec_lib.measure.race.harness import Timing, race, target_texts
from specdec_lib.measure.replay.recording import format_matrix
from specdec_lib.measure.sweep.stacks import scout
from specdec_lib.workload import Ladder, Prompt, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

LENGTHS = (1, 2, 3, 4, 6, 8)
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
    found = {AUTOREGRESSIVE: Kinded(AUTOREGRESSIVE, NoDraft())}
    for length in LENGTHS:
        chain = ChainDraft(ladder.draft, length, match=match)
        found[f"chain of {length}"] = Kinded("chain", chain)
    for length in (2, 4):
        chain = ChainDraft(ladder.middle, length, match=middle)
        found[f"chain of {length}, middle"] = Kinded("chain", chain)
    trees = {
        f"{budget}, depth {depth}": TreeDraft(ladder.draft, budget=budget, depth=depth, match=match)
        for budget, depth in TREES
    }
    found |= {f"tree of {name}": Kinded("tree", tree) for name, tree in trees.items()}
    small, large = (scout(ladder, sampler, budget=size, depth=5) for size in (4, 8))
    staged = {f"tree of {name}": StagedTree(trees[name], small, guided=1) for name in [*trees][2:5]}
    chain = ChainDraft(ladder.draft, 4, match=match)
    staged["chain of 4"] = StagedTree(chain, large, guided=1)
    found |= {f"staged {name}": Kinded("staged", draft) for name, draft in staged.items()}
    copies = MaxGram(None, 4)
    cascades = {one: from_matrix((ladder.draft, copies), one, match=match) for one in MATRICES}
    cascades[DEEPER] = from_matrix((ladder.middle, ladder.draft, copies), DEEPER)
    return found | {
        f"cascade {format_matrix(matrix)}": Kinded("cascade", draft)
        for matrix, draft in cascades.items()
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
    from tqdm.auto import tqdm

    timings = _race(ladder, drafts, sampler, prompts, seed, max_new_tokens)
    bar = tqdm(timings, total=len(prompts), desc="clock", disable=not progress, mininterval=1)
    return _table((one for group in bar for one in group), drafts)


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
    prediction = predict_speeds(observations, kinds, tables(medians(pd.DataFrame(passes))))
    return prediction, _table(found, drafts)


def beside_predictions(prediction: "DataFrame", rows: "DataFrame", *, seed: int = 0) -> "DataFrame":
    """A row per draft: what was predicted, and by the clock tokens per second and the speed-up over
    plain decoding, with intervals over prompts.

    The columns are: draft, kind, predicted, predicted_speed_up; measured, low, high; speed_up,
    speed_up_low, speed_up_high; tokens_per_round, prompts; error, predicted ÷ measured − 1;
    foreseen_tokens_per_round; host_share and the overheads, as `predict_speeds`.
    Raises ValueError if a draft was not measured, or plain decoding was not.
    """
    if missing := {AUTOREGRESSIVE, *prediction.draft} - set(rows.draft):
        raise ValueError(f"no measurement of {', '.join(sorted(missing))}")
    plain = prediction.predicted[prediction.draft == AUTOREGRESSIVE].iloc[0]
    found = prediction.rename(columns={"tokens_per_round": "foreseen_tokens_per_round"})
    found.insert(3, "predicted_speed_up", found.predicted / plain)
    measured = speed_ups(rows, seed=seed).drop(columns="kind")
    both = found.merge(measured, on="draft", how="left")
    both["error"] = both.predicted / both.measured - 1
    first = ["draft", "kind", "predicted", "predicted_speed_up", *measured.columns[1:], "error"]
    return both[first + [name for name in found if name not in first]]


def speed_ups(rows: "DataFrame", *, seed: int = 0) -> "DataFrame":
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
        sides = (own.tokens, own.seconds, base.tokens, base.seconds)
        row = {"draft": name, "kind": kind}
        row["measured"], row["low"], row["high"] = bootstrap(*sides[:2], seed=seed)
        gain = paired_bootstrap(*sides, seed=seed)
        row["speed_up"], row["speed_up_low"], row["speed_up_high"] = gain
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
) -> Iterator[list[Timing]]:
    contenders = [
        ours(ladder.target, one.draft, sampler, method=one.kind, setting=name)
        for name, one in drafts.items()
    ]
    texts = target_texts(ladder, prompts, sampler, tokens=int(max_new_tokens), seed=seed)
    return race(contenders, texts, ladder.target, seed=seed)


def _table(timings: Iterable[Timing], drafts: Mapping[str, Kinded]) -> "DataFrame":
    """The rows draft by draft."""
    import pandas as pd

    columns = {"setting": "draft", "method": "kind"}
    columns |= {name: name for name in ("prompt", "tokens", "rounds", "seconds")}
    found = pd.DataFrame(
        {new: vars(timing)[old] for old, new in columns.items()} for timing in timings
    )
    order = list(drafts).index
    return found.sort_values(
        "draft", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
