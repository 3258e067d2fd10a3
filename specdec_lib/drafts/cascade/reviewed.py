"""The vertical cascade (reviews), and the horizontal one (drafts take turns along one path).

Source: Chen et al. 2024 (cascade speculative drafting), 3.1, 3.2 and Algorithm 1. Ours hands tokens
up with their distributions, may review a tree, and counts tokens over all drafts, as their code.
"""

from dataclasses import dataclass
from functools import partial
from itertools import count, repeat
from typing import Annotated, Literal

from torch import Tensor

from specdec_lib.core.chance import Chance, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import ROOT, Count, MatchTable, TokenTree, leading
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.cascade.walks import allowed_child, ranked_path, reject_leniently
from specdec_lib.drafts.max_gram import ORIGINS
from specdec_lib.drafts.trees.slots import Child, add_children

Walk = list[tuple[int, list[Child]]]
Lenient = Annotated[float, Within(1, 1e9)]


def check_names(*parts: Draft | LanguageModel) -> None:
    """Raises ValueError if a model is called as Max-Gram's guesses are: it would seem exempt from
    lenience.
    """
    for name in models_in(*parts):
        if name in ORIGINS:
            taken = f"{', '.join(ORIGINS)} are the names of Max-Gram's guesses"
            raise ValueError(f"{taken}; call the model {name!r} otherwise")


@checked
@dataclass(frozen=True)
class Reviewed:
    """A draft whose guesses a model (the reviewer) verifies in one pass: it proposes the accepted
    tokens, whose source is "<drafter> via <reviewer>", and one more of the reviewer's own.

    lenience           l, where 1 is none; for "iid" a guess is accepted with probability
                       min(1, l · the reviewer's ÷ its drafter's), for "ranked" see `allowed_child`
    exempt_max_gram    Max-Gram's nodes, bigrams too, that no model has reviewed get lenience 1
    siblings           "ranked": the reviewer follows its choices under the shared noise; "iid": it
                       accepts and draws as `reject` does, and hands up rows
    width              children per node: the kept token, and width − 1 leaves (a comb): the
                       reviewer's next likeliest for "ranked", independent draws for "iid"
    match              turns ranks and gaps into scores; at temperature 0 probabilities do, but for
                       leaves under "iid"

    Raises ValueError for a lenience above 1 under "iid" where the draft branches, and for a model
    called as Max-Gram's guesses are. Source: Chen et al. 2024, section 3.1 and appendix B (the
    exemption, and combs of 8 children).
    """

    reviewer: LanguageModel
    draft: Draft
    lenience: Lenient = 1.0
    exempt_max_gram: bool = True
    siblings: Literal["ranked", "iid"] = "ranked"
    width: Count = 1
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        check_names(self.reviewer, self.draft)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain or comb of at least one token, unless the reviewer's context is full."""
        tree = TokenTree.rooted(context)
        room = self.reviewer.max_positions - len(context)
        if room < 0:
            return tree
        inner = chance.inner("review", (tree.root_position,))
        guessed = self.draft.propose(context, inner.inner("guess")).cut(room)
        return self.review(context, guessed, inner, via=f" via {self.reviewer.name}")

    def review(self, context: Context, guessed: TokenTree, chance: Chance, via: str) -> TokenTree:
        """What is handed up of guesses within the reviewer's positions; sources get `via`."""
        walk = self._quick_walk(context, guessed, chance) or self._walk(context, guessed, chance)
        sources = [*(guessed.sources[node] + via for node, _ in walk[1:]), self.reviewer.name]
        tree, last = TokenTree.rooted(context), ROOT
        for (_, (kept, *others)), source in zip(walk, sources, strict=True):
            children = [kept._replace(source=source), *others]
            last, tree = len(tree), add_children(tree, {last: children})
        return tree

    def _quick_walk(self, context: Context, guessed: TokenTree, chance: Chance) -> Walk | None:
        """The same as `_walk`, if the reviewer ranks children itself and there is no lenience."""
        if self.siblings != "ranked" or self.lenience != 1:
            return None
        shape = {"width": self.width, "match": self.match}
        path = ranked_path(self.reviewer, context, guessed, chance, **shape)
        return path and [(node, list(map(self._child, *ranked))) for node, ranked in path]

    def _walk(self, context: Context, guessed: TokenTree, chance: Chance) -> Walk:
        """The review: each node on the accepted path, with the children handed up for it."""
        logits = self.reviewer.score(context, guessed)
        exempt = ORIGINS if self.exempt_max_gram else ()
        leniences = [1.0 if source in exempt else self.lenience for source in guessed.sources]
        if self.siblings == "ranked":
            allowed = partial(allowed_child, guessed, logits, chance, leniences)
            verdict, rows = look_up(guessed, logits, chance, otherwise=allowed), repeat(None)
        else:
            verdict, rows = reject_leniently(guessed, logits, chance, leniences)
        hand_up = self._ranked if self.siblings == "ranked" else self._drawn
        tokens = *(guessed.tokens[node] for node in verdict.path), verdict.bonus
        return [
            (node, hand_up(guessed, node, logits[node], self._child(token, 1.0, row), chance))
            for node, token, row in zip((ROOT, *verdict.path), tokens, rows, strict=False)
        ]

    def _child(self, token: int, factor: float, row: Tensor | None = None) -> Child:
        return Child(token, factor, row, self.reviewer.name)

    def _ranked(
        self, guessed: TokenTree, node: int, logits: Tensor, kept: Child, chance: Chance
    ) -> list[Child]:
        """The token that goes on, and the reviewer's likeliest others."""
        position = guessed.position(node) + 1
        if chance.sampler.temperature == 0:
            found = chance.rank(logits, position, self.width)[0] if self.width > 1 else []
            tokens = [*dict.fromkeys((kept.token, *found))]
            factors = dict(zip(tokens, unwarped(logits, tokens), strict=True))
        else:
            found, gaps = leading(*chance.rank(logits, position, max(2, self.width)), self.width)
            factors = dict(zip(found, map(self.match.rate, count(), gaps), strict=True))
            factors.setdefault(kept.token, self.match.rate(len(found)))
        chosen = [*dict.fromkeys((kept.token, *factors))]  # the kept one first
        return [self._child(one, factors[one]) for one in chosen[: self.width]]

    def _drawn(
        self, guessed: TokenTree, node: int, logits: Tensor, kept: Child, chance: Chance
    ) -> list[Child]:
        """The token that goes on, and independent draws of the reviewer."""
        probs, greedy = chance.sampler.probs(logits), chance.sampler.temperature == 0
        factor = unwarped(logits, [kept.token])[0] if greedy else self.match.rate(0)
        found = [kept._replace(factor=factor)]
        for rank in range(1, self.width):
            slots = (0,) * guessed.depths[node] + (rank,)
            token = chance.draw("sibling", probs, guessed.root_position, slots)
            found.append(self._child(token, self.match.rate(rank), probs))
        return found


@checked
@dataclass(frozen=True)
class Relay:
    """A horizontal cascade: part i extends one path while that has fewer than lengths[0] + … +
    lengths[i] tokens, at the best-scored new leaf (the deeper of a tie); other branches remain.

    parts      strongest first; one that guesses nothing more hands over to the next
    lengths    tokens per part; a part may overshoot, and later ones then add less or are skipped

    Raises ValueError unless there is a length of 0 or more per part, not all 0, and for a model
    called as Max-Gram's guesses are.
    """

    parts: tuple[Draft, ...]
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        fits = len(self.parts) == len(self.lengths) and min(self.lengths, default=0) >= 0
        if not (fits and any(self.lengths)):
            wanted = f"{len(self.parts)} drafts take as many lengths of 0 or more, one above"
            raise ValueError(f"a relay of {wanted}, got {self.lengths}")
        check_names(*self.parts)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The path that the parts extend in turn, and their other branches; rows are kept."""
        tree, leaf, wanted = TokenTree.rooted(context), ROOT, 0
        for number, (part, length) in enumerate(zip(self.parts, self.lengths, strict=True)):
            wanted += length
            while (depth := tree.depths[leaf]) < wanted:
                # what an earlier round drew here must not decide again
                inner = chance.inner("part", (tree.root_position, number, depth))
                guessed = part.propose(context.extended(tree.path_tokens(leaf)), inner)
                if not guessed.guesses:
                    break
                before, tree = len(tree), tree.grafted(leaf, guessed)
                added = [node for node in range(before, len(tree)) if not tree.children(node)]
                leaf = max(added, key=lambda node: (tree.scores[node], tree.depths[node]))
        return tree
