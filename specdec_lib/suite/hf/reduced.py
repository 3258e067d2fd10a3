"""What is left of a draft without stages and cascades: one guesser, a shape, and what was lost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.cascade import Relay, Reviewed
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.planned import Planned
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.drafts.trees.slots import best_slots

NONE, MODEL, COPIES = "none", "model", "copies"
DRAWN = ("iid", "distinct")  # siblings that are drawn by chance


@dataclass(frozen=True)
class Reduced:
    """The nearest plain draft.

    kind       "none", "model" (a draft model guesses) or "copies" (of what stands in the text)
    length     guesses of the chain
    others     further guesses of its tree, whose broadest node has `width` children
    window     longest ending that is looked for, None for no limit; `least` the shortest
    ranking    the name of the match table that ranks guesses, if it is no default
    lost       what the plain draft does not do
    """

    kind: str
    length: int = 0
    model: LanguageModel | None = None
    others: int = 0
    width: int = 1
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
    """The nearest plain draft: of a tree the chain of its first-ranked guesses, of several drafts
    the one that is always asked, else the first with a model; a reviewer guesses itself.

    Raises ValueError for a draft that is not the library's own.
    """
    match draft:
        case NoDraft():
            return Reduced(NONE)
        case ChainDraft():
            drawn = draft.siblings in DRAWN
            return Reduced(MODEL, draft.length, draft.model, drawn=drawn, floor=draft.floor)
        case TreeDraft():
            return _tree(draft)
        case NgramDraft():
            depth = draft.depth if draft.widths is None else len(draft.widths)
            table = f"the n-gram table {draft.table.name!r} with its back-off: the text is copied"
            lost = (table, "the tree of table guesses")
            return Reduced(COPIES, depth, window=draft.table.order - 1, lost=lost)
        case MaxGram():
            lost = () if draft.bigrams is None else ("the bigram table that fills up the chain",)
            return Reduced(COPIES, draft.length, window=draft.window, least=draft.least, lost=lost)
        case StagedTree():
            return reduce_draft(draft.draft).without("the scout, which saves passes of the draft")
        case StagedChain():
            plain = ChainDraft(draft.model, draft.length, siblings=draft.siblings)
            return reduce_draft(plain).without("the scout under which the draft decodes its chain")
        case Reviewed():
            return _reviewed(draft)
        case Relay():
            asked = [(part, n) for part, n in zip(draft.parts, draft.lengths, strict=True) if n]
            (part, length), *others = asked
            found = replace(reduce_draft(part), length=length, others=0, width=1)
            lost = f"the horizontal cascade: {len(others)} cheaper drafts for later positions"
            return found.without(lost) if others else found
        case Planned():
            usual = draft.best(0)  # where nothing can be copied
            return _one_of(draft.parts, usual, "by the situation")
        case FirstDraft():
            return _one_of(draft.parts, len(draft.parts) - 1, "taking turns")
        case MergedDraft():
            return _one_of(draft.parts, 0, "in the same pass")
    raise ValueError(f"only the library's own drafts have flags, got {type(draft).__name__}")


def _tree(draft: TreeDraft) -> Reduced:
    length, width, guesses = _shape(draft)
    ranking = "" if draft.match == MatchTable() else draft.match.name
    how = {"drawn": draft.siblings in DRAWN, "floor": draft.floor, "ranking": ranking}
    found = Reduced(MODEL, length, draft.model, width=width, others=guesses - length, **how)
    best = f"a tree of the {guesses} best guesses"
    lost = [f"the tree's shape: {guesses} guesses" if draft.budget is None else best]
    lost += ["siblings drawn without replacement"] if draft.siblings == "distinct" else []
    return found.without(*lost) if width > 1 else found


def _shape(draft: TreeDraft) -> tuple[int, int, int]:
    """Depth of the first-ranked path, children of the broadest node, guesses in all."""
    if draft.widths is not None:
        return len(draft.widths), max(draft.widths), sum(accumulate(draft.widths, mul))
    if draft.shape is not None:
        widths = map(draft.shape.parents.count, range(len(draft.shape)))
        return draft.shape.depth, max(widths), draft.shape.guesses
    table = MatchTable(draft.match.rates)  # whatever the gaps
    slots = best_slots(table, draft.budget, draft.depth, draft.floor)
    ends = (depth for depth in range(draft.depth) if (0,) * depth not in slots.get(depth, {}))
    widths = (width for level in slots.values() for width in level.values())
    return max(1, next(ends, draft.depth)), max(widths, default=1), draft.budget


def _reviewed(draft: Reviewed) -> Reduced:
    lost = [f"the review: {draft.reviewer.name!r} guesses token by token, with a pass for each"]
    lost += [f"a lenience of {draft.lenience:g} in that review"] if draft.lenience > 1 else []
    lost += [f"a comb of {draft.width} children per position"] if draft.width > 1 else []
    length = reduce_draft(draft.draft).length + 1
    drawn = draft.siblings == "iid"
    return Reduced(MODEL, length, draft.reviewer, drawn=drawn, lost=tuple(lost))


def _one_of(parts: Sequence[Draft], usual: int, words: str) -> Reduced:
    """What is left of the usual part, or of the first with a model where that has none."""
    found = [reduce_draft(part) for part in parts]
    modelled = [number for number, one in enumerate(found) if one.kind == MODEL]
    kept = usual if usual in modelled or not modelled else modelled[0]
    others = [type(part).__name__ for number, part in enumerate(parts) if number != kept]
    return found[kept].without(*(f"{words}: the guesses of {name}" for name in others))
