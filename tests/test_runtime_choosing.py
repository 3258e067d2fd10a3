"""Children that the fast runtime chooses in compiled calls are those that `TreeDraft` chooses from
its logits.
"""

import pytest
from test_runtime_fast import SAMPLERS, gpt2, walk
from test_runtime_growing import MATCH, NETWORKS, long_way

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.fast.model import FastModel

pytestmark = pytest.mark.usefixtures("unchecked")


def test_every_token_of_a_large_head_competes_for_the_noise_without_top_k() -> None:
    """Most of 3,000 tokens lose by the bits of their noise alone."""
    network = gpt2(vocab_size=3000, n_layer=1)
    grown, slow = (FastModel(network, "draft", threads=1) for _ in range(2))
    for number, temperature in enumerate((0.3, 1.0, 3.0, 30.0) * 8):
        context = Context.of([number, 5, 1000 + number])
        draft = TreeDraft(grown, widths=(6,), match=MATCH)
        given = context, Chance(number, Sampler(temperature))
        assert draft.propose(*given).tokens == long_way(draft, slow).propose(*given).tokens


@pytest.mark.parametrize("sampler", [*SAMPLERS[:2], Sampler(0.8), Sampler(1.0, top_p=0.9)], ids=str)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_staged_tree_is_the_tree_grown_level_by_level(network: str, sampler: Sampler) -> None:
    staged, slow = (FastModel(NETWORKS[network](), "draft", threads=1) for _ in range(2))
    scout = ChainDraft(FastModel(gpt2(n_layer=1), "scout", threads=1), 3)
    for shape in ({"budget": 9, "depth": 4}, {"shape": Shape((-1, 0, 0, 1, 1, 2, 3))}):
        draft = TreeDraft(staged, match=MATCH, **shape)
        for number, (context, _) in enumerate(walk(8, seed=7)):
            chance = Chance(number, sampler)
            staged.forget()
            slow.forget()
            tree = StagedTree(draft, scout, guided=2).propose(context, chance)
            wanted = long_way(draft, slow).propose(context, chance)
            assert (tree.tokens, tree.parents) == (wanted.tokens, wanted.parents)
            assert tree.scores == pytest.approx(wanted.scores, rel=1e-5)
    assert 0 < staged.usage.passes <= slow.usage.passes
