"""The walk of `look_up` by a model that chooses children itself, without its logits in Python."""

import functools

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel, Ranked, TreeGrower
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree

_grows = functools.cache(lambda kind: issubclass(kind, TreeGrower))  # which takes long to find out


def ranked_path(
    model: LanguageModel,
    context: Context,
    tree: TokenTree,
    chance: Chance,
    *,
    width: int = 1,
    match: MatchTable,
) -> list[tuple[int, Ranked]] | None:
    """The nodes on the path that `look_up` follows, from the root on, each with its first `width`
    "ranked" children, the best of which is the model's choice; None if the model ranks none.
    """
    if not _grows(type(model)):
        return None
    ranked = model.rank(context, tree, chance, width=width, match=match)
    if ranked is None:
        return None
    found: list[tuple[int, Ranked]] = []
    node: int | None = ROOT
    while node is not None:
        found.append((node, ranked(node)))
        (choice, *_), _ = found[-1][1]
        node = tree.child(node, choice)
    return found
