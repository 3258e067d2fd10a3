"""Records in, tables out: what the figures of a tree, a walk and a generation are drawn from."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import Generation
from specdec_lib.core.trace import Choice
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import follow_choices


def nodes(tree: TokenTree, *, labels: Sequence[str], path: Sequence[int] = ()) -> pd.DataFrame:
    """A row per node: its place, token, source and score, and whether it was accepted."""
    table = pd.DataFrame({"node": range(len(tree)), "parent": tree.parents, "depth": tree.depths})
    table["position"] = [tree.position(node) for node in range(len(tree))]
    table = table.assign(token=list(labels), source=tree.sources, score=tree.scores)
    return table.assign(accepted=table.node.isin(path))


def walk(
    tree: TokenTree,
    target_logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    *,
    text: Callable[[int], str],
) -> pd.DataFrame:
    """A row per node that the walk of `look_up` comes to: the target's choice there, how probable
    it was, and which child holds it, if any.
    """
    choices: list[Choice] = []
    follow_choices(tree, target_logits, chance, trace=choices.append)
    rows = []
    for node, token, child in choices:
        children = tree.children(node)
        held = "none: emitted as correction or bonus" if child is None else children.index(child)
        probability = float(chance.sampler.probs(target_logits[node])[token])
        row = {"at": text(tree.tokens[node]), "position": tree.position(node) + 1}
        row |= {"target's choice": text(token), "probability": probability}
        rows.append(row | {"guesses": len(children), "child": held})
    return pd.DataFrame(rows)


def emitted_tokens(generation: Generation, *, text: Callable[[int], str]) -> pd.DataFrame:
    """A row per generated token: its text, who guessed it, and in which round."""
    rows = [
        (text(token), source, number)
        for number, played in enumerate(generation.rounds)
        for token, source in zip(played.emitted, played.sources, strict=True)
    ]
    return pd.DataFrame(rows, columns=["token", "source", "round"])


def outcomes(
    distributions: Mapping[str, Mapping[tuple[int, ...], float]], *, words: Sequence[str]
) -> pd.DataFrame:
    """A row per outcome and distribution, for `distributions`: outcomes are tuples of tokens, and
    stand in the table as words.
    """
    found = sorted({outcome for one in distributions.values() for outcome in one})
    rows = [
        ("·".join(words[token] for token in outcome), name, one.get(outcome, 0.0))
        for name, one in distributions.items()
        for outcome in found
    ]
    return pd.DataFrame(rows, columns=["token", "distribution", "probability"])
