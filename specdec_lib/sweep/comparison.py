"""The drafts that the README's table compares, and one process's share of their sweep."""

from typing import TYPE_CHECKING

import torch

from specdec_lib.chance import Sampler
from specdec_lib.draft import ChainDraft, Draft, TreeDraft
from specdec_lib.sweep import stacks
from specdec_lib.sweep.grid import Setting, sweep
from specdec_lib.workload import Ladder, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

TEMPERATURES = (0.0, 1.0)


def drafts(ladder: Ladder, sampler: Sampler = Sampler()) -> dict[str, Draft]:
    """The drafts that the table compares, each with the match table of its models under this sampler."""
    match = ladder.match("draft", sampler)
    return {
        "n-gram, best tree of 16": stacks.scout(ladder, sampler, obeyed="target"),
        "Max-Gram, chain of 10": ladder.max_gram,
        "draft, chain of 4": ChainDraft(ladder.draft, 4, match=match),
        "draft, chain of 8": ChainDraft(ladder.draft, 8, match=match),
        "draft, tree 4·2·1·1": TreeDraft(ladder.draft, widths=(4, 2, 1, 1), match=match),
        "draft, best tree of 16": TreeDraft(ladder.draft, budget=16, match=match),
        "draft, best tree of 32": TreeDraft(ladder.draft, budget=32, match=match),
    }


def swept(part: int, *, parts: int, prompts: int, seed: int, max_new_tokens: int) -> "DataFrame":
    """The rows of every `parts`-th of the held-out code prompts, from number `part` on; in a module of its own, for processes to find it."""
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    samplers = [Sampler(temperature) for temperature in TEMPERATURES]
    settings = [Setting(name, draft, sampler) for sampler in samplers for name, draft in drafts(ladder, sampler).items()]
    share = load_prompts("code", "held-out", prompts)[part::parts]
    return sweep(settings, share, ladder, seed=seed, max_new_tokens=max_new_tokens, progress=part == 0)
