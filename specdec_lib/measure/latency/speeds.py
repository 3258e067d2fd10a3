"""Settings by the clock: some thirty drafts on held-out prompts beside what development prompts and
latency tables said of them.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.intervals import bootstrap, paired_bootstrap
from specdec_lib.measure.latency.curves import ROWS, medians, tables, timed_once
from specdec_lib.measure.latency.ledger import run
from specdec_lib.measure.latency.passes import Clock
from specdec_lib.measure.latency.predicting import Played, observed, predicted
from specdec_lib.workload import Ladder, Prompt, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

PLAIN = "autoregressive"
LENGTHS = (1, 2, 3, 4, 6, 8)
TREES = ((2, 2), (4, 3), (8, 4), (12, 6), (16, 6), (32, 8))  # budget and depth
MATRICES = (((1, 4), (0, 4)), ((2, 4), (0, 4)), ((1, 8), (0, 4)), ((3, 4), (0, 4)))
DEEPER = ((1, 0, 4), (0, 2, 4), (0, 0, 4))


class Kinded(NamedTuple):
    """A draft, and its kind: drafts of one kind do the same things more or less often."""

    kind: str
    draft: Draft


def grid(ladder: Ladder, sampler: Sampler) -> dict[str, Kinded]:
    """Plain decoding, chains, trees, staged trees and cascades of the ladder's models, by name;
    small and large ones, good and bad.
    """
    match = ladder.match("draft", sampler)
    found = {PLAIN: Kinded(PLAIN, NoDraft())}
    found |= {
        f"chain of {length}": Kinded("chain", ChainDraft(ladder.draft, length, match=match))
        for length in LENGTHS
    }
    middle = ladder.match("middle", sampler)
    found |= {
        f"chain of {length}, middle": Kinded(
            "chain", ChainDraft(ladder.middle, length, match=middle)
        )
        for length in (2, 4)
    }
    trees = {
        f"{budget}, depth {depth}": TreeDraft(ladder.draft, budget=budget, depth=depth, match=match)
        for budget, depth in TREES
    }
    found |= {f"tree of {name}": Kinded("tree", tree) for name, tree in trees.items()}
    scout_match = ladder.match("n-gram", sampler, obeyed="draft")
    scouts = {
        size: NgramDraft(
            ladder.katz,
            budget=size,
            depth=5,
            match=scout_match,
            counted_at=ladder.card["katz"]["temperature"],
        )
        for size in (4, 8)
    }
    for name in list(trees)[2:5]:
        found[f"staged tree of {name}"] = Kinded(
            "staged", StagedTree(trees[name], scouts[4], guided=1)
        )
    chain = ChainDraft(ladder.draft, 4, match=match)
    found["staged chain of 4"] = Kinded("staged", StagedTree(chain, scouts[8], guided=1))
    copies = MaxGram(None, 4)
    for matrix in MATRICES:
        found[f"cascade {written(matrix)}"] = Kinded(
            "cascade", from_matrix((ladder.draft, copies), matrix, match=match)
        )
    found[f"cascade {written(DEEPER)}"] = Kinded(
        "cascade", from_matrix((ladder.middle, ladder.draft, copies), DEEPER)
    )
    return found


def few(ladder: Ladder, sampler: Sampler) -> dict[str, Kinded]:
    """One setting of each kind, for sweeps over temperatures and domains."""
    every = grid(ladder, sampler)
    return {
        name: every[name]
        for name in (
            PLAIN,
            "chain of 3",
            "tree of 8, depth 4",
            "staged tree of 8, depth 4",
            "cascade 1 4 / 0 4",
        )
    }


def written(matrix: Sequence[Sequence[int]]) -> str:
    """A K matrix in one line."""
    return " / ".join(" ".join(map(str, row)) for row in matrix)


def measured(
    ladder: Ladder,
    drafts: Mapping[str, Kinded],
    sampler: Sampler,
    prompts: Sequence[Prompt],
    *,
    seed: int = 0,
    max_new_tokens: Integral = 64,
    first: int = 0,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """Every prompt decoded with every draft, the drafts in turn within a prompt: draft, kind,
    prompt, tokens, rounds, seconds.

    first    which draft the first prompt begins with; each prompt begins with another

    The reading of the prompt is not timed. Where `first` is 0, each draft first decodes a little
    that is not counted.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    names = list(drafts)
    with tqdm(
        total=len(prompts) * len(names), desc="clock", disable=not progress, mininterval=1
    ) as bar:
        found = []
        for number, (prompt, tokens, chance) in enumerate(
            _asked(ladder, prompts, sampler, seed), first
        ):
            limits = {"rule": look_up, "stop_tokens": ladder.stop_tokens, "clock": clock}
            for name in names if number == 0 else ():
                run(ladder.target, drafts[name].draft, tokens, chance, max_new_tokens=8, **limits)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                emitted, played, seconds, _ = run(
                    ladder.target,
                    drafts[name].draft,
                    tokens,
                    chance,
                    max_new_tokens=int(max_new_tokens),
                    **limits,
                )
                counts = {"tokens": emitted, "rounds": played, "seconds": seconds}
                found.append(
                    {"draft": name, "kind": drafts[name].kind, "prompt": prompt.name} | counts
                )
                bar.update()
    return _in_order([pd.DataFrame(found)], drafts)


def _in_order(parts: "Sequence[DataFrame]", drafts: Mapping[str, Kinded]) -> "DataFrame":
    """The rows of all parts, draft by draft."""
    import pandas as pd

    return pd.concat(parts).sort_values(
        "draft", key=lambda column: column.map(list(drafts).index), kind="stable", ignore_index=True
    )


def raced(
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
    """What development prompts and pass times say of every draft (`predicted`), and what the clock
    says on held-out ones (`measured`).

    In turn, so that both see the same machine: a development prompt, one repeat of the curves of
    all models, a held-out prompt, and so on, as many of each as there are held-out prompts;
    development prompts begin anew where there are fewer. The prediction knows nothing of the
    held-out ones.
    """
    found, timed = [], []
    played: dict[str, Played] = {}
    models = [ladder.target, ladder.middle, ladder.draft]
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    asked = list(_asked(ladder, development, sampler, seed))
    for number, prompt in enumerate(held_out):
        _, tokens, chance = asked[number % len(asked)]
        for name, one in drafts.items():
            seen = observed(ladder.target, one.draft, tokens, chance, **limits)
            played[name] = played[name] + seen if name in played else seen
        timed += timed_once(models, rows, contexts, number)
        found.append(
            measured(
                ladder,
                drafts,
                sampler,
                [prompt],
                seed=seed,
                max_new_tokens=max_new_tokens,
                first=number,
                progress=progress,
            )
        )
    return predicted(
        played, {name: one.kind for name, one in drafts.items()}, tables(medians(timed))
    ), _in_order(found, drafts)


def compared(foresight: "DataFrame", rows: "DataFrame", *, seed: int = 0) -> "DataFrame":
    """A row per draft: what was predicted, and by the clock tokens per second and the speed-up over
    plain decoding, with intervals over prompts.

    The columns are: draft, kind, predicted, predicted_speed_up; measured, low, high; error,
    predicted ÷ measured − 1; speed_up, speed_up_low, speed_up_high; tokens_per_round,
    foreseen_tokens_per_round, prompts; host_share and the overheads, as `predicted`.
    Raises ValueError if a draft was not measured, or plain decoding was not.
    """
    import pandas as pd

    if missing := {PLAIN, *foresight.draft} - set(rows.draft):
        raise ValueError(f"no measurement of {', '.join(sorted(missing))}")
    plain = foresight.set_index("draft").predicted[PLAIN]
    speeds = speed_ups(rows, seed=seed).set_index("draft")
    found = []
    for one in foresight.itertuples():
        own = speeds.loc[one.draft]
        labels = {
            "draft": one.draft,
            "kind": one.kind,
            "predicted": one.predicted,
            "predicted_speed_up": one.predicted / plain,
        }
        parts = {
            name: getattr(one, name)
            for name in ("host_share", "round_overhead", "guess_overhead", "pass_overhead")
        }
        error = {
            "error": one.predicted / own.measured - 1,
            "foreseen_tokens_per_round": one.tokens_per_round,
        } | parts
        found.append(labels | own.drop("kind").to_dict() | error)
    return pd.DataFrame(found)


def speed_ups(rows: "DataFrame", *, seed: int = 0) -> "DataFrame":
    """Per draft of `measured`: draft, kind, measured tokens per second, low, high; speed_up over
    plain decoding on the same prompts, speed_up_low,
    speed_up_high; tokens_per_round, prompts.  Intervals are 95 %, by bootstrap over prompts."""
    import pandas as pd

    plain = rows[rows.draft == PLAIN].set_index("prompt")
    found = []
    for (name, kind), group in rows.groupby(["draft", "kind"], sort=False):
        own = group.set_index("prompt")
        base = plain.loc[own.index]
        speed, low, high = bootstrap(own.tokens, own.seconds, seed=seed)
        gain, gain_low, gain_high = paired_bootstrap(
            own.tokens, own.seconds, base.tokens, base.seconds, seed=seed
        )
        speeds = {
            "measured": speed,
            "low": low,
            "high": high,
            "speed_up": gain,
            "speed_up_low": gain_low,
            "speed_up_high": gain_high,
        }
        found.append(
            {"draft": name, "kind": kind}
            | speeds
            | {"tokens_per_round": own.tokens.sum() / own.rounds.sum(), "prompts": len(own)}
        )
    return pd.DataFrame(found)


def _asked(
    ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, seed: int
) -> Iterator[tuple[Prompt, tuple[int, ...], Chance]]:
    for prompt, own in zip(prompts, seeds(prompts, seed), strict=True):
        yield prompt, ladder.encode(prompt), Chance(own, sampler)
