"""Staged drafts: a cheaper draft (the scout) speculates for the draft model, which then needs fewer
passes. A scout may be staged itself. `StagedTree`, the usual one, proposes exactly its draft's tree
or chain; in `StagedChain` the draft model decodes one chain by `look_up` or `reject`.

Source: Spector and Ré 2023, section 3.2, which leaves the rule between the two models open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from specdec_lib.core.chance import Chance, Slots, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import ROOT, Count, MatchTable, TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.following import ranked_path
from specdec_lib.drafts.trees.growing import ChainDraft, Known, TreeDraft
from specdec_lib.drafts.trees.slots import Child, add_children

Path = tuple[int, ...]  # tokens from below the root down to a node


@checked
@dataclass(frozen=True)
class StagedTree:
    """The very tree of `draft`, in at most as many passes; nodes guessed by both name the scout.

    scout     guesses which nodes come next, for the draft to score in the same pass
    guided    how many nodes without logits the scout extends per pass, best-scored first
    """

    draft: TreeDraft | ChainDraft
    scout: Draft
    guided: Count = 4

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Grow the tree from the known logits, and score missing nodes, until none is missing."""
        tree = self.draft.as_tree if isinstance(self.draft, ChainDraft) else self.draft
        if isinstance(table := self.scout, NgramDraft):
            scout = table.guesser(context, chance), self.guided, table.source
            if (grown := tree.grown_by_model(context, chance, scout)) is not None:
                return grown
        reading = _Reading(self, tree, context, chance)
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
            key, known = (path, tree.slots(node), width), self.known[path]
            if key not in self.made:
                self.made[key] = self.draft.children(tree, node, known, self.chance, width)
            found[node] = self.made[key]
        return found

    def named(self, tree: TokenTree) -> TokenTree:
        """The tree with the nodes that the scout guessed too named after its source."""
        paths: list[Path] = [()]
        for node in range(1, len(tree)):
            paths.append((*paths[tree.parents[node]], tree.tokens[node]))
        return replace(tree, sources=tuple(map(self.scouted.get, paths, tree.sources)))

    def read(self) -> None:
        """One pass over all missing nodes and what the scout guesses below the best of them."""
        paths = dict.fromkeys(self.missing)
        deepest = self.draft.reach(self.context) - 1  # nodes at the full depth get no children
        best = sorted(self.missing, key=lambda path: (-self.missing[path][0], len(path)))
        for path in best[: self.staged.guided]:
            inner = self.chance.inner("scout", (len(self.context) - 1, *self.missing[path][1]))
            guessed = self.staged.scout.propose(self.context.extended(path), inner).cut(
                deepest - len(path)
            )
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
    match       its rate at rank 0 is each score ÷ the parent's; for "ranked" at temperature 0 the
                model's probability is
    """

    model: LanguageModel
    scout: Draft
    length: Count = 4
    siblings: Literal["ranked", "iid"] = "ranked"
    match: MatchTable = MatchTable()

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain of `length` guesses, fewer where the model's context is full."""
        chain = TokenTree.rooted(context)
        length = min(self.length, self.model.max_positions - len(context) + 1)
        while (room := length - chain.guesses) > 0:
            here = context.extended(chain.tokens[1:])
            # what an earlier round drew here must not decide again
            inner = chance.inner("stage", (chain.root_position, chain.guesses))
            guessed = self.scout.propose(here, inner.inner("scout")).cut(room - 1)
            walk = self._quick_walk(here, guessed, inner) or self._walk(here, guessed, inner)
            sources = [*(guessed.sources[node] for node, _ in walk[1:]), self.model.name]
            for (_, child), source in zip(walk, sources, strict=True):
                child = child._replace(source=source)
                chain = add_children(chain, {len(chain) - 1: [child]})
        return chain

    def _quick_walk(
        self, context: Context, guessed: TokenTree, chance: Chance
    ) -> list[tuple[int, Child]] | None:
        """The same as `_walk`, if the model ranks children itself."""
        if self.siblings != "ranked":
            return None
        path = ranked_path(self.model, context, guessed, chance, match=self.match)
        greedy, rate = chance.sampler.temperature == 0, self.match.rate(0)
        return path and [
            (node, Child(token, factor if greedy else rate, None, ""))
            for node, ([token], [factor]) in path
        ]

    def _walk(
        self, context: Context, guessed: TokenTree, chance: Chance
    ) -> list[tuple[int, Child]]:
        """What the model decodes from guesses: each node on its path, and the token after it."""
        ranked, logits = self.siblings == "ranked", self.model.score(context, guessed)
        verdict = (look_up if ranked else reject)(guessed, logits, chance)
        tokens, found = [*(guessed.tokens[node] for node in verdict.path), verdict.bonus], []
        for node, token in zip((ROOT, *verdict.path), tokens, strict=True):
            row = None if ranked else chance.sampler.probs(logits[node])
            greedy = ranked and chance.sampler.temperature == 0
            factor = unwarped(logits[node], [token])[0] if greedy else self.match.rate(0)
            found.append((node, Child(token, factor, row, "")))
        return found
