"""One round explained step by step, with every random number that decided something in it.

The draft proposes, the target scores, and the walk of `look_up` or `reject` reports each decision
to a trace, from which the steps are made. Steps are data; `figures.steps` draws them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel, Rule, Verdict
from specdec_lib.core.trace import Choice, FinalDraw, Trial
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import (
    UNWARPED,
    follow_choices,
    look_up,
    reject,
    try_children,
)
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

SHOWN = 6  # candidates of a choice or a distribution, at least, beside what decides
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
    """The steps of the first round after `prompt`: the context, one step per level of guesses, the
    target's pass, one step per decision of the walk, and what is emitted.

    rule    `look_up` or `reject`
    text    gives the text of a token

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
    events: list[Choice | Trial | FinalDraw] = []
    walk = follow_choices if rule is look_up else try_children
    verdict = walk(tree, logits, chance, trace=events.append)
    told += _walked(_Explained(tree, logits, chance, text), events)
    told.append(_emitted(tree, verdict, text))
    return told


def _proposed(
    draft: Draft, context: Context, tree: TokenTree, chance: Chance, text: Text
) -> Iterator[Step]:
    """A step per level of guesses."""
    known = _deciding(draft) if tree.guesses else None
    rows = (
        known.model.score(context, tree)
        if known is not None and tree.root_position + max(tree.depths) < known.model.max_positions
        else None
    )
    for depth in range(1, max(tree.depths) + 1):
        nodes = [node for node in range(len(tree)) if tree.depths[node] == depth]
        numbers = tuple(_guess(known, tree, node, rows, chance, text) for node in nodes)
        what = f"{len(nodes)} guess{'es' if len(nodes) != 1 else ''}"
        what += f" for position {tree.root_position + depth}"
        yield Step(
            "propose",
            f"The draft proposes {what}{_how(known, chance)}.",
            tree.cut(depth),
            numbers=numbers,
        )


def _deciding(draft: Draft) -> TreeDraft | ChainDraft | None:
    """The draft whose numbers decided: a tree or a chain, or the one inside a staged tree, which
    proposes the very same tree; None for others.
    """
    if isinstance(draft, TreeDraft | ChainDraft):
        return draft
    return draft.draft if isinstance(draft, StagedTree) else None


def _how(draft: TreeDraft | ChainDraft | None, chance: Chance) -> str:
    if draft is None:
        return "; it tells no numbers of what decided"
    noisy = "log-probability and the position's noise, which the target shares"
    ranked = (
        "probability: at temperature 0 there is no noise"
        if chance.sampler.temperature == 0
        else noisy
    )
    drawn = "one draw per guess from its distribution"
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
    words = (
        f"The target reads all {len(tree)} nodes in one pass, a row of logits each; a row sees the"
        " prompt, its ancestors and itself."
    )
    return Step("score", words, tree, numbers=tuple(numbers))


@dataclass(frozen=True)
class _Explained:
    """What the explanation of a decision needs beside the decision."""

    tree: TokenTree
    logits: Float[Tensor, "nodes vocab"]
    chance: Chance
    text: Text

    def choice(self, event: Choice, path: tuple[int, ...]) -> Step:
        """What competes after a node, with its noise."""
        tree, node = self.tree, event.node
        position = tree.position(node) + 1
        guessed = [tree.tokens[child] for child in tree.children(node)]
        best, _ = self.chance.rank(self.logits[node], position, SHOWN)
        rows = []
        for token in dict.fromkeys((*best, *guessed)):
            child = guessed.index(token) + 1 if token in guessed else 0
            row = {"token": token, "text": self.text(token), "child": child}
            row["chosen"] = token == event.token
            row |= _perturbed(self.logits[node], token, position, self.chance, noisy=True)
            rows.append(row)
        if event.child is not None:
            goes = f"child {rows[0]['child']} has it: accepted"
        elif guessed:
            goes = "no child has it: the walk ends"
        else:
            goes = "nothing was guessed here: the walk ends"
        words = f"At position {position} the target chooses {self.text(event.token)!r}; {goes}."
        return Step("choose", words, tree, path, tuple(rows))

    def trial(self, event: Trial, path: tuple[int, ...]) -> Step:
        """The coin of one child, and what is wanted before and after it."""
        tree, child = self.tree, event.child
        token, probability = tree.tokens[child], min(1.0, event.ratio)
        number = self.chance.uniform("coin", tree.root_position, tree.slots(child))
        coin = {"probability": probability, "uniform": number}
        coin |= {"kept": event.accepted, "node": child}
        rows = _before_and_after(event.wanted, tree.rows[child], event.left, token, self.text)
        words = (
            f"Child {tree.slots(child)[-1] + 1}, {self.text(token)!r}: kept with probability"
            f" {probability:.3f}; the number is {number:.3f}:"
            f" {'kept' if event.accepted else 'rejected'}."
        )
        return Step("coin", words, tree, path, tuple(row | coin for row in rows))

    def final_draw(self, event: FinalDraw, path: tuple[int, ...]) -> Step:
        """The number that draws the correction or bonus."""
        tree, text = self.tree, self.text(event.token)
        number = self.chance.uniform("emit", tree.root_position, tree.slots(event.node))
        after = "the target's distribution"
        if tree.children(event.node):
            after = f"what the rejected children left of {after}"
        words = f"From {after}, the number {number:.3f} draws {text!r}."
        return Step("draw", words, tree, path, _draw(event.wanted, event.token, number, self.text))


def _walked(explained: _Explained, events: Sequence[Choice | Trial | FinalDraw]) -> Iterator[Step]:
    """A step per decision of the walk."""
    path: tuple[int, ...] = ()
    for event in events:
        if isinstance(event, Choice):
            yield explained.choice(event, path)
            path += () if event.child is None else (event.child,)
        elif isinstance(event, Trial):
            yield explained.trial(event, path)
            path += (event.child,) if event.accepted else ()
        else:
            yield explained.final_draw(event, path)


def _emitted(tree: TokenTree, verdict: Verdict, text: Text) -> Step:
    nodes = [
        {"token": tree.tokens[node], "text": text(tree.tokens[node]), "source": tree.sources[node]}
        for node in verdict.path
    ]
    last = verdict.path[-1] if verdict.path else ROOT
    name = "correction" if tree.children(last) else "bonus"
    numbers = (*nodes, {"token": verdict.bonus, "text": text(verdict.bonus), "source": "target"})
    words = (
        f"{len(nodes)} of {tree.guesses} guesses accepted, {len(numbers)} tokens emitted: the last,"
        f" the {name}, is the target's own."
    )
    return Step("emit", words, tree, verdict.path, numbers)


def _perturbed(
    logits: Float[Tensor, " vocab"], token: int, position: int, chance: Chance, *, noisy: bool
) -> dict[str, object]:
    """A token's log-probability (unwarped at temperature 0), its noise, and the sum compared."""
    sampler = UNWARPED if chance.sampler.temperature == 0 else chance.sampler
    log_prob = float(sampler.log_probs(logits)[token])
    noise = chance.noise(position, [token])[0] if noisy else 0.0
    return {"log_probability": log_prob, "noise": noise, "sum": log_prob + noise}


def _before_and_after(
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


def _interval(probs: Tensor, token: int) -> tuple[float, float]:
    """The part of [0, 1) whose numbers draw this token."""
    cumulative = probs.double().cumsum(-1)
    total = float(cumulative[-1])
    low = float(cumulative[token - 1]) / total if token else 0.0
    return low, float(cumulative[token]) / total


def _draw(probs: Tensor, token: int, drawn: float, text: Text) -> Numbers:
    """The token and the likeliest others, each with its part of [0, 1), in the order in which they
    lie there.
    """
    likely = probs.argsort(descending=True, stable=True)[:SHOWN].tolist()
    rows = []
    for one in sorted({token, *likely}):
        low, high = _interval(probs, one)
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
