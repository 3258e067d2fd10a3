"""Staged drafts: a cheaper draft (the scout) speculates for the draft model, which then needs fewer
passes. A scout may be staged itself. `StagedTree`, the usual one, proposes its draft's own tree or
chain in fewer passes; in `StagedChain` the draft model decodes one chain by `look_up` or `reject`.

Source: Spector and Ré 2023, section 3.2, which leaves the rule between the two models open.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from specdec_lib.core.chance import Chance, Slots
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, LanguageModel, Scout
from specdec_lib.core.tree import Count, MatchTable, TokenTree
from specdec_lib.drafts.cascade.reviewed import Reviewed
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.growing import ChainDraft, Known, TreeDraft
from specdec_lib.drafts.trees.slots import Child

Path = tuple[int, ...]  # tokens from below the root down to a node


@checked
@dataclass(frozen=True)
class StagedTree:
    """Builds exactly the tree of `draft` in at most as many passes, because a scout guesses which
    nodes come next; nodes that the scout also guessed carry its name. A fast model grows the tree
    in one compiled call where the scout is an n-gram table. A model that reads a tree level by
    level (`StateReader`) is left without the scout, which could not save it a pass.

    scout     guesses which nodes come next, for the draft to score in the same pass
    guided    how many nodes without logits the scout extends per pass, best-scored first
    """

    draft: TreeDraft | ChainDraft
    scout: Draft
    guided: Count = 4

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Grow the tree from the known logits, and score missing nodes, until none is missing."""
        draft = self.draft.as_tree if isinstance(self.draft, ChainDraft) else self.draft
        if draft.by_level:
            return draft.propose(context, chance)
        if isinstance(self.scout, NgramDraft):
            guesser = self.scout.guesser(context, chance)
            scout = Scout(guesser, self.guided, self.scout.source)
            grown = draft.grown_by_model(context, chance, scout)
            if grown is not None:
                return grown
        reading = _Reading(self, draft, context, chance)
        while True:
            tree = reading.draft.grow(context, chance, reading.children)
            if not reading.missing:
                return reading.named(tree)
            reading.read()


@dataclass
class _Reading:
    """What has been read during one `propose`, by path, and which paths the scout guessed."""

    staged: StagedTree
    draft: TreeDraft
    context: Context
    chance: Chance
    known: dict[Path, Known] = field(default_factory=dict)
    scouted: dict[Path, str] = field(default_factory=dict)
    made: dict[tuple[Path, Slots, int], list[Child]] = field(default_factory=dict)
    missing: dict[Path, tuple[float, Slots]] = field(default_factory=dict)

    def children(self, tree: TokenTree, widths: Mapping[int, int]) -> dict[int, list[Child]]:
        """The children of the nodes whose rows are known; the others are noted as missing."""
        found = {}
        for node, width in widths.items():
            path = tree.path_tokens(node)
            if path not in self.known:
                self.missing.setdefault(path, (tree.scores[node], tree.slots(node)))
                continue
            key = (path, tree.slots(node), width)
            if key not in self.made:
                known = self.known[path]
                self.made[key] = self.draft.children(tree, node, known, self.chance, width)
            found[node] = self.made[key]
        return found

    def named(self, tree: TokenTree) -> TokenTree:
        """The tree, in which nodes that the scout guessed too have the scout's source."""
        paths = map(tree.path_tokens, range(len(tree)))
        return replace(tree, sources=tuple(map(self.scouted.get, paths, tree.sources)))

    def read(self) -> None:
        """One pass over all missing nodes and what the scout guesses below the best of them."""
        paths = dict.fromkeys(self.missing)
        deepest = self.draft.reach(self.context) - 1  # nodes at the full depth get no children
        best = sorted(self.missing, key=lambda path: (-self.missing[path][0], len(path)))
        for path in best[: self.staged.guided]:
            inner = self.chance.inner("scout", (len(self.context) - 1, *self.missing[path][1]))
            guessed = self.staged.scout.propose(self.context.extended(path), inner)
            guessed = guessed.cut(deepest - len(path))
            for node in range(1, len(guessed)):
                below = (*path, *guessed.path_tokens(node))
                self.scouted.setdefault(below, guessed.sources[node])
                paths[below] = None
        tree = TokenTree.of_paths(self.context, paths)
        found = self.draft.read(self.context, tree, self.chance)
        self.known |= {tree.path_tokens(node): found[node] for node in range(len(tree))}
        self.missing = {}


@checked
@dataclass(frozen=True)
class StagedChain:
    """A chain of `length` guesses that `model` decodes speculatively from its scout's guesses: the
    second stage of Spector and Ré 2023 taken literally.

    siblings    "ranked": the model's own choices under the shared noise, found by `look_up`; "iid":
                drawn from the model's distribution, each node's row, by `reject`
    """

    model: LanguageModel
    scout: Draft
    length: Count = 4
    siblings: Literal["ranked", "iid"] = "ranked"
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        _ = self._reviewed  # checks the other values

    @functools.cached_property
    def _reviewed(self) -> Reviewed:
        return Reviewed(self.model, self.scout, siblings=self.siblings, match=self.match)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain of `length` guesses, fewer where the model's context is full."""
        chain = TokenTree.rooted(context)
        length = min(self.length, self.model.max_positions - len(context) + 1)
        while (room := length - chain.guesses) > 0:
            here = context.extended(chain.tokens[1:])
            # what an earlier round drew here must not decide again
            inner = chance.inner("stage", (chain.root_position, chain.guesses))
            guessed = self.scout.propose(here, inner.inner("scout")).cut(room - 1)
            kept = self._reviewed.review(here, guessed, inner, via="")
            chain = chain.grafted(chain.guesses, kept)
        return chain
