"""One round told step by step, with every random number that decided something in it.

The round is the loop's own: the draft proposes, the target scores, and the walk is told from the
same numbers that `look_up` and `reject` ask chance for. What is told is data; `figures.steps` draws
it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import Rule, look_up, offered_probability, reject, remaining
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

UNWARPED = Sampler(1.0)
SHOWN = 6  # candidates of a choice or a law, at least; what decides is always among them
Text = Callable[[int], str]
Numbers = tuple[dict[str, object], ...]


@dataclass(frozen=True)
class Step:
    """One step of a round.

    kind       "context", "propose", "score", "choose", "coin", "draw" or "emit"
    words      what happens, in a sentence
    tree       the guesses so far
    path       the accepted nodes so far
    numbers    a row per number or candidate: see `figures.step`
    """

    kind: str
    words: str
    tree: TokenTree
    path: tuple[int, ...] = ()
    numbers: Numbers = ()


def steps_of(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    rule: Rule,
    text: Text,
) -> list[Step]:
    """The steps of the first round after `prompt`: context, a level of guesses at a time, one pass,
    the walk, what is emitted.

    rule    `look_up` or `reject`
    text    of a token

    Raises ValueError for another rule, or a context that does not fit the target.
    """
    if rule not in (look_up, reject):
        raise ValueError(f"steps are told of the rules look_up and reject, got {rule}")
    context = prompt if isinstance(prompt, Context) else Context.of(prompt)
    if len(context) > target.max_positions:
        raise ValueError(
            f"the prompt has {len(context)} tokens, the target reads at most {target.max_positions}"
        )
    tree = draft.propose(context, chance).cut(target.max_positions - len(context))
    logits = target.score(context, tree)
    told = [
        Step(
            "context",
            f"{len(context)} tokens are known; the last is the root, at position"
            f" {tree.root_position}.",
            tree.cut(0),
        )
    ]
    told += _proposed(draft, context, tree, chance, text)
    told.append(_scored(tree, text))
    told += (_looked_up if rule is look_up else _rejected)(tree, logits, chance, text)
    return told


def _proposed(
    draft: Draft, context: Context, tree: TokenTree, chance: Chance, text: Text
) -> Iterator[Step]:
    """A step per level of guesses."""
    known = _deciding(draft, context, tree, chance) if tree.guesses else None
    rows = (
        known.model.score(context, tree)
        if known is not None and tree.root_position + max(tree.depths) < known.model.max_positions
        else None
    )
    for depth in range(1, max(tree.depths) + 1):
        nodes = [node for node in range(len(tree)) if tree.depths[node] == depth]
        numbers = tuple(_guess(known, tree, node, rows, chance, text) for node in nodes)
        what = f"{len(nodes)} guess{'es' if len(nodes) != 1 else ''} for position {tree.root_position + depth}"
        yield Step(
            "propose",
            f"The draft proposes {what}{_how(known, chance)}.",
            tree.cut(depth),
            numbers=numbers,
        )


def _deciding(
    draft: Draft, context: Context, tree: TokenTree, chance: Chance
) -> TreeDraft | ChainDraft | None:
    """The draft whose numbers decided: a tree or a chain, or the one inside a staged draft, which
    proposes the very same tree; None for others.
    """
    if isinstance(draft, TreeDraft | ChainDraft):
        return draft
    inner = getattr(draft, "draft", None) if hasattr(draft, "scout") else None
    if not isinstance(inner, TreeDraft | ChainDraft):
        return None
    own = inner.propose(context, chance).cut(max(tree.depths))
    return inner if (own.tokens, own.parents) == (tree.tokens, tree.parents) else None


def _how(draft: TreeDraft | ChainDraft | None, chance: Chance) -> str:
    if draft is None:
        return "; it tells no numbers of what decided"
    noisy = "log-probability and the position's noise, which the target shares"
    ranked = (
        "probability: at temperature 0 there is no noise"
        if chance.sampler.temperature == 0
        else noisy
    )
    drawn = "one draw per guess from its law"
    ways = {
        "ranked": ranked,
        "top": "probability alone",
        "iid": drawn,
        "distinct": f"{drawn}, without what was drawn before",
    }
    return f", by {ways[draft.siblings]}"


def _guess(
    draft: TreeDraft | ChainDraft | None,
    tree: TokenTree,
    node: int,
    rows: Tensor | None,
    chance: Chance,
    text: Text,
) -> dict[str, object]:
    """What decided on one guess, as far as the draft can be asked."""
    token, parent = tree.tokens[node], tree.parents[node]
    told = {
        "node": node,
        "token": token,
        "text": text(token),
        "after": text(tree.tokens[parent]),
        "score": tree.scores[node],
    }
    if draft is None or rows is None:
        return told
    if (row := tree.rows[node]) is not None:
        drawn = chance.uniform("sibling", tree.root_position, tree.slots(node))
        low, high = _interval(row, token)
        return told | {"probability": float(row[token]), "uniform": drawn, "low": low, "high": high}
    noisy = draft.siblings == "ranked"
    return told | _perturbed(rows[parent], token, tree.position(node), chance, noisy=noisy)


def _scored(tree: TokenTree, text: Text) -> Step:
    numbers = [
        {
            "row": node,
            "text": text(tree.tokens[node]),
            "position": tree.position(node),
            "sees": tree.depths[node] + 1,
        }
        for node in range(len(tree))
    ]
    words = f"The target reads all {len(tree)} nodes in one pass, a row of logits each; a row sees the prompt, its ancestors and itself."
    return Step("score", words, tree, numbers=tuple(numbers))


def _looked_up(
    tree: TokenTree, logits: Float[Tensor, "nodes vocab"], chance: Chance, text: Text
) -> Iterator[Step]:
    """A step per node of the walk: what competes there, with its noise."""
    path, node = [], ROOT
    while True:
        position, guessed = (
            tree.position(node) + 1,
            [tree.tokens[child] for child in tree.children(node)],
        )
        best, _ = chance.rank(logits[node], position, SHOWN)
        rows = []
        for token in dict.fromkeys((*best, *guessed)):
            child = guessed.index(token) + 1 if token in guessed else 0
            row = {"token": token, "text": text(token), "child": child, "chosen": token == best[0]}
            rows.append(row | _perturbed(logits[node], token, position, chance, noisy=True))
        child = tree.child(node, best[0])
        ends = (
            "no child has it: the walk ends"
            if guessed
            else "nothing was guessed here: the walk ends"
        )
        goes = ends if child is None else f"child {rows[0]['child']} has it: accepted"
        yield Step(
            "choose",
            f"At position {position} the target chooses {text(best[0])!r}; {goes}.",
            tree,
            tuple(path),
            tuple(rows),
        )
        if child is None:
            yield _emitted(tree, path, best[0], text)
            return
        path.append(child)
        node = child


def _rejected(
    tree: TokenTree, logits: Float[Tensor, "nodes vocab"], chance: Chance, text: Text
) -> Iterator[Step]:
    """A step per child that is tried, and one for the final draw."""
    path, node = [], ROOT
    while True:
        wanted = chance.sampler.probs(logits[node])
        for number, child in enumerate(tree.children(node), 1):
            token, offered = tree.tokens[child], tree.rows[child]
            ratio = float(wanted[token]) / offered_probability(offered, token, len(wanted))
            kept = (drawn := chance.uniform("coin", tree.root_position, tree.slots(child))) < ratio
            left = wanted if kept else remaining(wanted, token, offered)
            numbers = _laws(wanted, offered, left, token, text)
            coin = {"probability": min(1.0, ratio), "uniform": drawn, "kept": kept, "node": child}
            words = f"Child {number}, {text(token)!r}: kept with probability {min(1.0, ratio):.3f}; the number is {drawn:.3f}: "
            yield Step(
                "coin",
                words + ("kept." if kept else "rejected."),
                tree,
                tuple(path),
                tuple(row | coin for row in numbers),
            )
            if kept:
                path.append(child)
                node = child
                break
            wanted = left
        else:
            drawn = chance.uniform("emit", tree.root_position, tree.slots(node))
            token = chance.draw("emit", wanted, tree.root_position, tree.slots(node))
            after = (
                "what the rejected children left of the target's law"
                if tree.children(node)
                else "the target's law"
            )
            words = f"From {after}, the number {drawn:.3f} draws {text(token)!r}."
            yield Step("draw", words, tree, tuple(path), _draw(wanted, token, drawn, text))
            yield _emitted(tree, path, token, text)
            return


def _emitted(tree: TokenTree, path: Sequence[int], bonus: int, text: Text) -> Step:
    nodes = [
        {"token": tree.tokens[node], "text": text(tree.tokens[node]), "source": tree.sources[node]}
        for node in path
    ]
    last = path[-1] if path else ROOT
    name = "bonus" if not tree.children(last) else "correction"
    numbers = (*nodes, {"token": bonus, "text": text(bonus), "source": "target"})
    words = f"{len(path)} of {tree.guesses} guesses accepted, {len(numbers)} tokens emitted: the last, the {name}, is the target's own."
    return Step("emit", words, tree, tuple(path), numbers)


def _perturbed(
    logits: Float[Tensor, " vocab"], token: int, position: int, chance: Chance, *, noisy: bool
) -> dict[str, object]:
    """A token's log-probability (unwarped at temperature 0), its noise, and the sum that is
    compared.
    """
    if chance.sampler.temperature == 0:
        law = UNWARPED.log_probs(logits)[token]
    else:
        law = chance.sampler.log_probs(logits)[token]
    noise = chance.noise(position, [token])[0] if noisy else 0.0
    return {"log_probability": float(law), "noise": noise, "sum": float(law) + noise}


def _laws(
    wanted: Tensor, offered: Tensor | None, left: Tensor, token: int, text: Text
) -> list[dict[str, object]]:
    """The token at hand and the likeliest others: wanted, offered (1 for a token chosen without
    chance), and what is left of it.
    """
    likely = wanted.argsort(descending=True, stable=True)[:SHOWN].tolist()
    rows = []
    for one in dict.fromkeys((token, *likely)):
        chance_of = float(one == token) if offered is None else float(offered[one])
        rows.append(
            {
                "token": one,
                "text": text(one),
                "wanted": float(wanted[one]),
                "offered": chance_of,
                "left": float(left[one]),
            }
        )
    return rows


def _interval(law: Tensor, token: int) -> tuple[float, float]:
    """The part of [0, 1) whose numbers draw this token."""
    cumulative = law.double().cumsum(-1)
    total = float(cumulative[-1])
    return (float(cumulative[token - 1]) / total if token else 0.0), float(
        cumulative[token]
    ) / total


def _draw(law: Tensor, token: int, drawn: float, text: Text) -> Numbers:
    """The token and the likeliest others, each with its part of [0, 1), in the order in which they
    lie there.
    """
    likely = law.argsort(descending=True, stable=True)[:SHOWN].tolist()
    rows = []
    for one in sorted({token, *likely}):
        low, high = _interval(law, one)
        rows.append(
            {
                "token": one,
                "text": text(one),
                "low": low,
                "high": high,
                "probability": high - low,
                "uniform": drawn,
                "chosen": one == token,
            }
        )
    return tuple(rows)
