"""The horizontal cascade: drafts take turns along one path, the strongest first. Source: Chen et
al. 2024 (cascade speculative drafting), section 3.2 and Algorithm 1; tokens are counted over all
drafts, as in the published code.
"""

from dataclasses import dataclass

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.cascade.reviewed import check_parts


@checked
@dataclass(frozen=True)
class Relay:
    """A horizontal cascade: part i extends one path while it is shorter than lengths[0] + … +
    lengths[i] tokens, at the best-scored new leaf (the deeper of a tie); other branches remain.

    parts      strongest first; one that guesses nothing more hands over to the next
    lengths    tokens per part; a part may overshoot, and later ones then add less or are skipped
    """

    parts: tuple[Draft, ...]
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.lengths) or min(self.lengths, default=0) < 0:
            wanted = f"a relay of {len(self.parts)} drafts has as many lengths, each 0 or more"
            raise ValueError(f"{wanted}, got {self.lengths}")
        if not any(self.lengths):
            raise ValueError(f"an empty cascade proposes nothing: lengths {self.lengths}")
        check_parts(self.parts)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The tree of the path and of what branches off it."""
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
