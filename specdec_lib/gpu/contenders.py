"""Who writes: plain decoding, chains, trees, staged drafts and cascades, in our loop or in whole rounds on the device."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transformers import PreTrainedModel

from specdec_lib.cascade import from_matrix
from specdec_lib.chance import Chance, Sampler
from specdec_lib.decode import decode
from specdec_lib.draft import ChainDraft, Draft, NoDraft, TreeDraft
from specdec_lib.gpu.setting import wait
from specdec_lib.lm import LanguageModel
from specdec_lib.ngram import Katz, MaxGram, NgramDraft
from specdec_lib.runtime.rounds import ROOT_ALONE, GraphRounds
from specdec_lib.staged import StagedChain, StagedTree
from specdec_lib.theory import Shape

CHAIN = 4
WIDTHS = (4, 2, 2, 1, 1)  # a tree of 4 + 8 + 16 + 16 + 16 guesses
COUNTED_AT = 1.5  # temperature of the samples that the n-gram table is counted on


@dataclass(frozen=True)
class Written:
    """One continuation.

    seconds    without the reading of the prompt
    work       per model, its passes and rows
    """

    tokens: tuple[int, ...]
    seconds: float
    rounds: int
    work: Mapping[str, tuple[int, int]]


Write = Callable[[Sequence[int], int, int], Written]
"""(prompt, number of new tokens, seed) -> what was written: exactly so many tokens."""


def shapes(chain: int = CHAIN, widths: Sequence[int] = WIDTHS) -> dict[str, Shape]:
    """What whole rounds can guess; a method by its name in the tables."""
    return {"autoregressive": ROOT_ALONE, "chain": Shape.chain(chain), "tree": Shape.of_widths(widths)}


def drafts(draft: LanguageModel, katz: Katz | None, chain: int = CHAIN, widths: Sequence[int] = WIDTHS, *, budget: int = 16) -> dict[str, Draft]:
    """What our loop can guess, by method; without an n-gram table no staged drafts."""
    tree = TreeDraft(draft, widths=tuple(widths))
    found = {"autoregressive": NoDraft(), "chain": ChainDraft(draft, chain), "tree": tree}
    if katz is not None:
        scout = NgramDraft(katz, budget=8, depth=5, counted_at=COUNTED_AT)
        adaptive = TreeDraft(draft, budget=budget, depth=2 * chain)
        found |= {"staged chain": StagedChain(draft, scout, 2 * chain), "staged tree": StagedTree(adaptive, scout, guided=1)}
    return found | {"cascade": from_matrix((draft, MaxGram(None, 4)), ((2, 4), (0, 4)))}


def looped(target: LanguageModel, draft: Draft, sampler: Sampler, device: str) -> Write:
    """Our loop on the host."""

    def write(prompt: Sequence[int], count: int, seed: int) -> Written:
        marks: list[float] = []
        first: list[float] = []

        def mark(played: object) -> None:
            marks.append(time.perf_counter())
            if not first:
                first.append(played.seconds)

        wait(device)
        made = decode(target, draft, tuple(prompt), Chance(seed, sampler), max_new_tokens=count, on_round=mark)
        work: dict[str, tuple[int, int]] = {}
        for name, used in itertools.chain.from_iterable(played.usage.items() for played in made.rounds):
            passes, rows = work.get(name, (0, 0))
            work[name] = passes + used.passes, rows + used.rows
        return Written(made.tokens, marks[-1] - marks[0] + first[0], len(made.rounds), work)

    return write


def graphed(target: PreTrainedModel, draft: PreTrainedModel | None, shape: Shape, sampler: Sampler, **options: object) -> Write:
    """Whole rounds on the device; `options` as of `GraphRounds`."""
    rounds = GraphRounds(target, draft, shape, sampler, **options)
    read = [len(level.readers) for level in rounds.layout.levels]
    per_round = {"target": (1, len(shape))} | ({"draft": (len(read), sum(read) + 1)} if read else {})

    def write(prompt: Sequence[int], count: int, seed: int) -> Written:
        playing = rounds.rounds(prompt, seed, max_new_tokens=count)
        wait(str(target.device))
        started = time.perf_counter()
        made = list(playing)
        seconds = time.perf_counter() - started
        work = {name: (passes * len(made), rows * len(made)) for name, (passes, rows) in per_round.items()}
        return Written(tuple(itertools.chain.from_iterable(made)), seconds, len(made), work)

    return write
