"""What is left of a draft where there are neither stages nor cascades: one guesser, a shape in
three numbers, and a list of what was lost.
"""

from dataclasses import dataclass, replace
from math import prod

from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.cascade import Relay, Reviewed
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.drafts.trees.slots import best_slots

NONE, MODEL, COPIES = "none", "model", "copies"


@dataclass(frozen=True)
class Reduced:
    """The nearest plain draft.

    kind       "none", "model" (a draft model guesses) or "copies" (of what stands in the text
               already)
    model      that guesses
    length     guesses of the chain
    width      most children of one node, and `guesses` in all, of the tree that the chain is taken
               from
    window     longest ending that is looked for, None for no limit; `least` the shortest
    drawn      whether guesses are drawn by chance
    floor      below which no guess scores
    ranking    the name of the match table that ranks guesses where tokens are sampled, if it is no
               default
    lost       what the plain draft does not do
    """

    kind: str
    model: LanguageModel | None = None
    length: int = 0
    width: int = 1
    guesses: int = 0
    window: int | None = None
    least: int = 1
    drawn: bool = False
    floor: float = 0.0
    ranking: str = ""
    lost: tuple[str, ...] = ()

    def without(self, *lost: str) -> "Reduced":
        """The same with more lost, named first."""
        return replace(self, lost=(*lost, *self.lost))


def reduce_draft(draft: Draft) -> Reduced:
    """The nearest plain draft of a draft.

    A tree becomes the chain of its first-ranked guesses: of a tree with a budget as deep as its
    match table would grow it. Of several drafts the one that is always asked remains, else the
    first with a model. A reviewer guesses token by token itself.
    Raises ValueError for a draft that is not the library's own.
    """
    for kinds, how in RULES.items():
        if isinstance(draft, kinds):
            return how(draft)
    raise ValueError(
        "only the library's own drafts can be put in other engines' flags, got"
        f" {type(draft).__name__}"
    )


def _nothing(draft: NoDraft) -> Reduced:
    return Reduced(NONE)


def _chain(draft: ChainDraft) -> Reduced:
    return Reduced(
        MODEL,
        draft.model,
        draft.length,
        1,
        draft.length,
        drawn=draft.siblings in ("iid", "distinct"),
        floor=draft.floor,
    )


def _tree(draft: TreeDraft) -> Reduced:
    length, width, guesses = _shape(draft)
    drawn = draft.siblings in ("iid", "distinct")
    ranking = "" if draft.match == MatchTable() else draft.match.name
    found = Reduced(
        MODEL, draft.model, length, width, guesses, drawn=drawn, floor=draft.floor, ranking=ranking
    )
    lost = [
        f"a tree of the {guesses} best guesses"
        if draft.budget is not None
        else f"the tree's shape: {guesses} guesses"
    ]
    lost += ["siblings drawn without replacement"] if draft.siblings == "distinct" else []
    return found.without(*lost) if width > 1 else found


def _shape(draft: TreeDraft) -> tuple[int, int, int]:
    """Depth of the first-ranked path, children of the broadest node, guesses in all."""
    if draft.widths is not None:
        return (
            len(draft.widths),
            max(draft.widths),
            sum(prod(draft.widths[:depth]) for depth in range(1, len(draft.widths) + 1)),
        )
    if draft.shape is not None:
        return (
            draft.shape.depth,
            max(map(draft.shape.parents.count, range(len(draft.shape)))),
            draft.shape.guesses,
        )
    table = MatchTable(draft.match.rates)  # whatever the gaps
    slots = best_slots(table, draft.budget, draft.depth, draft.floor)
    spine = next(
        (depth for depth in range(draft.depth) if (0,) * depth not in slots.get(depth, {})),
        draft.depth,
    )
    return (
        max(1, spine),
        max((width for level in slots.values() for width in level.values()), default=1),
        draft.budget,
    )


def _table(draft: NgramDraft) -> Reduced:
    depth = len(draft.widths) if draft.widths is not None else draft.depth
    return Reduced(COPIES, None, depth, 1, depth, window=draft.table.order - 1).without(
        f"the n-gram table {draft.table.name!r} with its back-off: what stands in the text is"
        " copied instead",
        "the tree of table guesses",
    )


def _max_gram(draft: MaxGram) -> Reduced:
    found = Reduced(
        COPIES, None, draft.length, 1, draft.length, window=draft.window, least=draft.least
    )
    return (
        found
        if draft.bigrams is None
        else found.without("the bigram table that fills up the chain")
    )


def _staged(draft: StagedTree) -> Reduced:
    return reduce_draft(draft.draft).without("the scout, which saves passes of the draft")


def _staged_chain(draft: StagedChain) -> Reduced:
    chain = ChainDraft(draft.model, draft.length, siblings=draft.siblings, match=draft.match)
    return reduce_draft(chain).without("the scout under which the draft decodes its chain")


def _reviewed(draft: Reviewed) -> Reduced:
    below = reduce_draft(draft.draft)
    lost = [f"the review: {draft.reviewer.name!r} guesses token by token, with a pass for each"]
    lost += [f"a lenience of {draft.lenience:g} in that review"] if draft.lenience > 1 else []
    lost += [f"a comb of {draft.width} children per position"] if draft.width > 1 else []
    length = below.length + 1
    return Reduced(
        MODEL, draft.reviewer, length, 1, length, drawn=draft.siblings == "iid", lost=tuple(lost)
    )


def _relay(draft: Relay) -> Reduced:
    asked = [
        (part, length) for part, length in zip(draft.parts, draft.lengths, strict=True) if length
    ]
    (part, length), *others = asked
    found = replace(reduce_draft(part), length=length, guesses=length, width=1)
    return (
        found.without(f"the horizontal cascade: {len(others)} cheaper drafts for later positions")
        if others
        else found
    )


def _first(draft: FirstDraft) -> Reduced:
    return _one_of(draft.parts, draft.parts[-1], "taking turns: the guesses of")


def _merged(draft: MergedDraft) -> Reduced:
    return _one_of(draft.parts, draft.parts[0], "in the same pass: the guesses of")


def _one_of(parts: tuple[Draft, ...], usual: Draft, words: str) -> Reduced:
    """What is left of the usual part, or of the first with a model where that has none."""
    found = {number: reduce_draft(part) for number, part in enumerate(parts)}
    modelled = [number for number, one in found.items() if one.kind == MODEL]
    kept = (
        parts.index(usual)
        if found[parts.index(usual)].kind == MODEL or not modelled
        else modelled[0]
    )
    others = [
        f"{words} {type(part).__name__}" for number, part in enumerate(parts) if number != kept
    ]
    return found[kept].without(*others)


RULES = {
    NoDraft: _nothing,
    ChainDraft: _chain,
    TreeDraft: _tree,
    NgramDraft: _table,
    MaxGram: _max_gram,
    StagedTree: _staged,
    StagedChain: _staged_chain,
    Reviewed: _reviewed,
    Relay: _relay,
    FirstDraft: _first,
    MergedDraft: _merged,
}
