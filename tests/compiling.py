"""Compile the fast runtime: the tests' workers, which both begin with notebooks that need it, would
each compile it, and the checks leave a processor idle meanwhile. The int8 edition, which one of
them needs first, and passes on several threads are compiled there.
"""

import torch
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts

PROMPT = (7, 300, 41, 7)


def compile_runtime() -> None:
    """Decode a few tokens with every kind of draft that has compiled code of its own."""
    ladder = tiny_ladder(runtime="fast", reads=True)
    for sampler in (Sampler(0), Sampler(1.0)):
        drafts = LadderDrafts(ladder, sampler, matched=False)
        tree = drafts.tree(6)
        for draft in (tree, drafts.tree(6, model="reading"), StagedTree(tree, drafts.scout(6))):
            decode(ladder.target, draft, PROMPT, Chance(1, sampler), max_new_tokens=8)


if __name__ == "__main__":
    torch.set_num_threads(1)
    compile_runtime()
