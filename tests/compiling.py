"""Compile the fast runtime, in the editions that are named: what runs beside leaves a processor
idle, and the notebooks and tests that begin at once would each compile it. Passes on several
threads are compiled where they are first needed.

Run as `python tests/compiling.py [fast] [int8]`; both unless one is named.
"""

import sys

import torch
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts

EDITIONS = ("fast", "int8")  # what `load_model` calls the runtime in float32, and in int8
PROMPT = (7, 300, 41, 7)


def compile_runtime(edition: str) -> None:
    """Decode a few tokens with every kind of draft that has compiled code of its own."""
    ladder = tiny_ladder(runtime=edition, reads=True)
    for sampler in (Sampler(0), Sampler(1.0)):
        drafts = LadderDrafts(ladder, sampler, matched=False)
        tree = drafts.tree(6)
        for draft in (tree, drafts.tree(6, model="reading"), StagedTree(tree, drafts.scout(6))):
            decode(ladder.target, draft, PROMPT, Chance(1, sampler), max_new_tokens=8)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for edition in sys.argv[1:] or EDITIONS:
        compile_runtime(edition)
