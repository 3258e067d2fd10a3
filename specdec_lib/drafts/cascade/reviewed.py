"""The vertical cascade (reviews), and the horizontal one (drafts take turns along one path).

Source: Chen et al. 2024 (cascade speculative drafting), 3.1, 3.2 and Algorithm 1. Ours hands tokens
up with their distributions, may review a tree, and counts tokens over all drafts, as their code.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

from torch import Tensor

from specdec_lib.core.chance import Chance, PerToken, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.protocols import Draft, LanguageModel, NodeLogits, Verdict
from specdec_lib.core.tree import ROOT, Count, MatchTable, TokenTree, leading
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.cascade.walks import allowed_child, ranked_path, reject_leniently
from specdec_lib.drafts.max_gram import ORIGINS
from specdec_lib.drafts.trees.slots import Child, add_children

Lenient = Annotated[float, Within(1, 1e9)]


class ReviewStep(NamedTuple):
    """A node on the path that a review accepted, and its children, the kept token's first."""

    node: int
    children: list[Child]


Walk = list[ReviewStep]


def check_names(*parts: Draft | LanguageModel) -> None:
    """Raises ValueError if a model is called as Max-Gram's guesses are: it would seem exempt from
    lenience.
    """
    for name in models_in(*parts):
        if name in ORIGINS:
            raise ValueError(
                f"{', '.join(ORIGINS)} are the names of Max-Gram's guesses;"
                f" call the model {name!r} otherwise"
            )


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
        walk = self._quick_walk(context, guessed, chance)
        if walk is None:
            walk = self._walk(context, guessed, chance)
        sources = [guessed.sources[step.node] + via for step in walk[1:]]
        sources.append(self.reviewer.name)
        tree = TokenTree.rooted(context)
        last = ROOT
        for step, source in zip(walk, sources, strict=True):
            kept = step.children[0]._replace(source=source)
            longer = add_children(tree, {last: [kept, *step.children[1:]]})
            last = len(tree)
            tree = longer
        return tree

    def _quick_walk(self, context: Context, guessed: TokenTree, chance: Chance) -> Walk | None:
        """What `_walk` gives, if the reviewer ranks children itself and there is no lenience."""
        if self.siblings != "ranked" or self.lenience != 1:
            return None
        path = ranked_path(
            self.reviewer, context, guessed, chance, width=self.width, match=self.match
        )
        if path is None:
            return None
        return [
            ReviewStep(node, [self._child(*one) for one in zip(tokens, factors, strict=True)])
            for node, (tokens, factors) in path
        ]

    def _walk(self, context: Context, guessed: TokenTree, chance: Chance) -> Walk:
        """The review, in a pass of the reviewer over the guesses."""
        logits = self.reviewer.score(context, guessed)
        exempt = ORIGINS if self.exempt_max_gram else ()
        leniences = [1.0 if source in exempt else self.lenience for source in guessed.sources]
        review = self._ranked_walk if self.siblings == "ranked" else self._drawn_walk
        return review(guessed, logits, chance, leniences)

    def _ranked_walk(
        self, guessed: TokenTree, logits: NodeLogits, chance: Chance, leniences: list[float]
    ) -> Walk:
        """The review by `look_up`: the reviewer's choices under the shared noise go on."""
        allowed = partial(allowed_child, guessed, logits, chance, leniences)
        verdict = look_up(guessed, logits, chance, otherwise=allowed)
        return [
            ReviewStep(node, self._likeliest(guessed, node, logits[node], token, chance))
            for node, token in _kept(guessed, verdict)
        ]

    def _drawn_walk(
        self, guessed: TokenTree, logits: NodeLogits, chance: Chance, leniences: list[float]
    ) -> Walk:
        """The review by `reject`: kept tokens carry the distribution that the review gave them."""
        verdict, rows = reject_leniently(guessed, logits, chance, leniences)
        return [
            ReviewStep(node, self._draws(guessed, node, logits[node], token, row, chance))
            for (node, token), row in zip(_kept(guessed, verdict), rows, strict=True)
        ]

    def _child(self, token: int, factor: float, row: Tensor | None = None) -> Child:
        return Child(token, factor, row, self.reviewer.name)

    def _likeliest(
        self, guessed: TokenTree, node: int, logits: PerToken, kept: int, chance: Chance
    ) -> list[Child]:
        """The kept token, and the reviewer's likeliest others after this node."""
        position = guessed.position(node) + 1
        if chance.sampler.temperature == 0:
            factors = self._greedy_factors(position, logits, kept, chance)
        else:
            factors = self._matched_factors(position, logits, kept, chance)
        chosen = [kept, *(token for token in factors if token != kept)]
        return [self._child(token, factors[token]) for token in chosen[: self.width]]

    def _greedy_factors(
        self, position: int, logits: PerToken, kept: int, chance: Chance
    ) -> dict[int, float]:
        """The probabilities of the likeliest tokens, best first, and of the kept one."""
        tokens = [kept]
        if self.width > 1:
            found, _ = chance.rank(logits, position, self.width)
            tokens = found if kept in found else [*found, kept]
        return dict(zip(tokens, unwarped(logits, tokens), strict=True))

    def _matched_factors(
        self, position: int, logits: PerToken, kept: int, chance: Chance
    ) -> dict[int, float]:
        """The match rates of the best tokens under the shared noise, and of the kept one."""
        ranked = chance.rank(logits, position, max(2, self.width))
        found, gaps = leading(*ranked, self.width)
        factors = {
            token: self.match.rate(rank, gap)
            for rank, (token, gap) in enumerate(zip(found, gaps, strict=True))
        }
        factors.setdefault(kept, self.match.rate(len(found)))
        return factors

    def _draws(
        self,
        guessed: TokenTree,
        node: int,
        logits: PerToken,
        kept: int,
        row: PerToken,
        chance: Chance,
    ) -> list[Child]:
        """The kept token with its row, and independent draws of the reviewer."""
        probs = chance.sampler.probs(logits)
        greedy = chance.sampler.temperature == 0
        factor = unwarped(logits, [kept])[0] if greedy else self.match.rate(0)
        found = [self._child(kept, factor, row)]
        for rank in range(1, self.width):
            slots = (0,) * guessed.depths[node] + (rank,)
            token = chance.draw("sibling", probs, guessed.root_position, slots)
            found.append(self._child(token, self.match.rate(rank), probs))
        return found


def _kept(guessed: TokenTree, verdict: Verdict) -> list[tuple[int, int]]:
    """The nodes on the path that a review accepted, root first, each with the token after it."""
    tokens = [guessed.tokens[node] for node in verdict.path]
    return list(zip((ROOT, *verdict.path), (*tokens, verdict.bonus), strict=True))


@checked
@dataclass(frozen=True)
class Relay:
    """A horizontal cascade: the parts extend one path in turn, part i up to the cumulative length
    lengths[0] + … + lengths[i]. Each goes on from the best-scored leaf that the one before added
    (the deeper of a tie); other branches remain. With lengths (1, 3) the first part guesses one
    token, and the second goes on until the path has four.

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
            raise ValueError(
                f"a relay of {len(self.parts)} drafts take as many lengths of 0 or more, one above,"
                f" got {self.lengths}"
            )
        check_names(*self.parts)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The path that the parts extend in turn, and their other branches; rows are kept."""
        tree = TokenTree.rooted(context)
        leaf = ROOT
        wanted = 0
        for number, (part, length) in enumerate(zip(self.parts, self.lengths, strict=True)):
            wanted += length
            while (depth := tree.depths[leaf]) < wanted:
                # what an earlier round drew here must not decide again
                inner = chance.inner("part", (tree.root_position, number, depth))
                guessed = part.propose(context.extended(tree.path_tokens(leaf)), inner)
                if not guessed.guesses:
                    break
                before = len(tree)
                tree = tree.grafted(leaf, guessed)
                added = [node for node in range(before, len(tree)) if not tree.children(node)]
                leaf = max(added, key=lambda node: (tree.scores[node], tree.depths[node]))
        return tree
