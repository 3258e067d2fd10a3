"""Token Recycling: trees of the tokens that the target held likeliest when it last read each token.
It learns in every round of `decode`, whoever guessed. Its guesses, and so the tokens (not the
distribution) that `reject` gives, depend on the order of prompts.

Source: Luo et al. 2024 (Turning trash into treasure), whose tree has one fixed shape; ours is grown
best-first, under the shared noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import NodeLogits
from specdec_lib.core.tree import Count, MatchTable, TokenTree, leading
from specdec_lib.drafts.trees.growing import Share
from specdec_lib.drafts.trees.slots import Child, grow_best

KEPT = 8  # successors per token
UNKNOWN = -1


class Successors:
    """Per token the target's likeliest next ones; copies and pickles of it start empty.

    tokens       [vocab, kept], likeliest first; −1 where the target has not read the token
    log_probs    [vocab, kept], natural logarithm, at temperature 1
    """

    def __init__(self) -> None:
        self.tokens = np.empty((0, KEPT), np.int64)
        self.log_probs = np.empty((0, KEPT), np.float32)

    def __reduce__(self) -> tuple[type["Successors"], tuple[()]]:
        return Successors, ()

    @in_turn
    def keep(self, tokens: tuple[int, ...], logits: NodeLogits) -> None:
        """Store the target's 8 likeliest successors of each token, in place of those before; of a
        token that is repeated the last occurrence counts.

        logits    one row after each token
        """
        vocabulary = logits.shape[-1]
        if len(self.tokens) != vocabulary:
            self.tokens = np.full((vocabulary, KEPT), UNKNOWN, np.int64)
            self.log_probs = np.full((vocabulary, KEPT), -np.inf, np.float32)
        best = torch.topk(logits.float(), min(KEPT, vocabulary))
        log_probs = best.values - logits.float().logsumexp(-1, keepdim=True)
        last = {token: node for node, token in enumerate(tokens)}
        known = list(last)
        nodes = list(last.values())
        width = best.indices.shape[-1]
        self.tokens[known, :width] = best.indices.cpu().numpy()[nodes]
        self.log_probs[known, :width] = log_probs.cpu().numpy()[nodes]

    @in_turn
    def after(self, token: int) -> tuple[list[int], list[float]]:
        """Likeliest next tokens and their log-probabilities; none for a token not read yet."""
        if token >= len(self.tokens):
            return [], []
        known = self.tokens[token] != UNKNOWN
        return self.tokens[token, known].tolist(), self.log_probs[token, known].tolist()


@checked
@dataclass(frozen=True, eq=False)
class TokenRecycling:
    """A best-first tree of what the target held likely after each token when it last read it.

    budget        guesses, at most
    depth         of the deepest guess, at most
    floor         lowest score of a guess
    match         turns ranks and gaps into scores where tokens are sampled
    siblings      "ranked": the likeliest under the shared noise; "top": the likeliest without noise
    successors    what was learnt; `dataclasses.replace` shares it

    It learns while it decodes: its guesses depend on the prompts before, and so do the tokens that
    `reject` gives, but not their distribution; `look_up` gives the target's own either way.
    """

    budget: Count = 16
    depth: Count = 6
    floor: Share = 0.0
    match: MatchTable = MatchTable()
    siblings: Literal["ranked", "top"] = "ranked"
    successors: Successors = field(default_factory=Successors, kw_only=True, repr=False)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        def expand(tree: TokenTree, widths: Mapping[int, int]) -> dict[int, list[Child]]:
            places = {node: (tree.tokens[node], tree.position(node) + 1) for node in widths}
            return {node: self._children(*place, chance) for node, place in places.items()}

        return grow_best(
            TokenTree.rooted(context),
            expand,
            budget=self.budget,
            depth=self.depth,
            floor=self.floor,
        )

    def learn(self, context: Context, tree: TokenTree, target_logits: NodeLogits) -> None:
        """Keep the target's likeliest tokens after every node, accepted or not."""
        self.successors.keep(tree.tokens, target_logits)

    def _children(self, token: int, position: int, chance: Chance) -> list[Child]:
        tokens, log_probs = self.successors.after(token)
        temperature = chance.sampler.temperature
        if not tokens or temperature == 0 or self.siblings == "top":
            factors = np.exp(log_probs).tolist()
        else:
            noisy = np.array(log_probs) / temperature + chance.noise(position, tokens)
            order = np.argsort(-noisy, kind="stable")
            gaps = (noisy[order[0]] - noisy[order]).tolist()
            tokens, gaps = leading([tokens[place] for place in order], gaps, len(order))
            factors = [self.match.rate(rank, gap) for rank, gap in enumerate(gaps)]
        children = zip(tokens, factors, strict=True)
        return [Child(one, factor, None, "recycled") for one, factor in children]
