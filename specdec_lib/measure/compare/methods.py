"""What is compared on any pair: a handful of usual settings, none of them tuned, and what Hugging
Face offers for the same two models.
"""

from collections.abc import Mapping
from dataclasses import replace

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.race.contenders import Contender, ours
from specdec_lib.measure.race.hugging import assisted, generates, looks_up
from specdec_lib.measure.sweep import stacks
from specdec_lib.workload import Ladder

PLAIN = "plain"
FOREIGN = ("Hugging Face, plain", "Hugging Face, prompt lookup", "Hugging Face, assisted")
ASSISTED = (5, "constant", 0.4)  # tokens per round, schedule, confidence that ends a guess
LOOKED_UP = (10, 2)  # tokens per round, longest ending that is looked for


def usual_drafts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """The drafts that are tried, by name, plain decoding first."""
    match = ladder.match("draft", sampler)
    tree = TreeDraft(ladder.draft, budget=8, depth=4, match=match)
    copies = MaxGram(None, 8, least=2)
    fed = StagedTree(tree, MaxGram(None, 4, least=2), guided=1)
    found: dict[str, Draft] = {
        PLAIN: NoDraft(),
        "Max-Gram, 8 copied tokens": copies,
        "chain of 2": ChainDraft(ladder.draft, 2, match=match),
        "chain of 4": ChainDraft(ladder.draft, 4, match=match),
        "best tree of 4": TreeDraft(ladder.draft, budget=4, depth=3, match=match),
        "best tree of 8": tree,
        "tree of 8 fed by Max-Gram": fed,
        "the same beside 8 copied tokens": MergedDraft((copies, fed)),
        "cascade: draft reviews Max-Gram": from_matrix(
            (ladder.draft, MaxGram(None, 4)), ((1, 4), (0, 4)), match=match
        ),
    }
    if ladder.katz is not None:
        scout = stacks.scout(ladder, sampler, budget=4, depth=5)
        found["tree of 8 fed by n-grams"] = StagedTree(tree, scout, guided=1)
    return found


def compared_contenders(
    ladder: Ladder, drafts: Mapping[str, Draft], sampler: Sampler
) -> list[Contender]:
    """Our loop with each of these drafts, and Hugging Face's `generate`: plain, with prompt lookup,
    and assisted by the same draft; each is its own method.
    """
    found = [
        ours(ladder.target, draft, sampler, method=name, runtime="ours", setting="untuned")
        for name, draft in drafts.items()
    ]
    network, guesser = ladder.target.model, ladder.draft.model
    plain = generates(network, sampler)
    [copying] = looks_up(network, sampler, grid=(LOOKED_UP,))
    [guided] = assisted(network, guesser, sampler, grid=(ASSISTED,))
    greedy = sampler.temperature == 0  # Hugging Face draws its own noise
    return found + [
        replace(one, method=name, exact=greedy)
        for name, one in zip(FOREIGN, (plain, copying, guided), strict=True)
    ]
