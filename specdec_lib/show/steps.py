"""One round explained step by step, with every random number that decided something in it.

The draft proposes, the target scores, and the walk of `look_up` or `reject` reports each decision
to a trace, from which the steps are made. Steps are data; `figures.step` draws them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.loop import check_arguments
from specdec_lib.core.protocols import Draft, LanguageModel, Rule, Verdict
from specdec_lib.core.trace import Choice, FinalDraw, Trial
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import UNWARPED, look_up, reject
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

SHOWN = 6  # candidates of a choice or a distribution, at least, beside what decides
RULES = (look_up, reject)
DRAWN = "one draw per guess from its distribution"
WAYS = {
    "ranked": "log-probability and the position's noise, which the target shares",
    "top": "probability alone",
    "iid": DRAWN,
    "distinct": f"{DRAWN}, without what was drawn before",
}
SCORED = (
    "The target reads all {} nodes in one pass, a row of logits each; a row sees the prompt, its"
    " ancestors and itself."
)
Row = dict[str, object]


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
    numbers: tuple[Row, ...] = ()


def steps_of(
    target: LanguageModel,
    draft: Draft,
    context: Context,
    chance: Chance,
    *,
    rule: Rule,
    text: Callable[[int], str],
) -> list[Step]:
    """The steps of the first round after `context`: the context, one step per level of guesses, the
    target's pass, one step per decision of the walk, and what is emitted.

    text    gives the text of a token
    Raises ValueError for another rule than `look_up` or `reject`, and for what `decode` refuses.
    """
    if rule not in RULES:
        raise ValueError(f"steps are told of the rules look_up and reject, got {rule}")
    check_arguments(target, draft, context)
    tree = draft.propose(context, chance).cut(target.max_positions - len(context))
    logits = target.score(context, tree)
    explained, events = _Explained(tree, logits, chance, text), []
    verdict = rule(tree, logits, chance, trace=events.append)
    known = f"{len(context)} tokens are known; the last is the root, at position"
    return [
        Step("context", f"{known} {tree.root_position}.", tree.cut(0)),
        *explained.proposed(draft, context),
        Step("score", SCORED.format(len(tree)), tree),
        *explained.walked(events),
        explained.emitted(verdict),
    ]


@dataclass(frozen=True)
class _Explained:
    """A round in words and numbers."""

    tree: TokenTree
    logits: Float[Tensor, "nodes vocab"]
    chance: Chance
    text: Callable[[int], str]

    def proposed(self, draft: Draft, context: Context) -> Iterator[Step]:
        """A step per level of guesses."""
        tree, known = self.tree, _deciding(draft)
        deepest, how, rows = max(tree.depths), "; it tells no numbers of what decided", None
        noisy = known is not None and known.siblings == "ranked"
        if known is not None:
            how = f", by {WAYS[known.siblings]}"
            if noisy and self.chance.sampler.temperature == 0:
                how = ", by probability: at temperature 0 there is no noise"
            if tree.guesses and tree.root_position + deepest < known.model.max_positions:
                rows = known.model.score(context, tree)
        for depth in range(1, deepest + 1):
            nodes = [node for node in range(len(tree)) if tree.depths[node] == depth]
            what = f"{len(nodes)} guess{'es' if len(nodes) != 1 else ''}"
            words = f"The draft proposes {what} for position {tree.root_position + depth}{how}."
            numbers = tuple(self._guess(node, rows, noisy=noisy) for node in nodes)
            yield Step("propose", words, tree.cut(depth), numbers=numbers)

    def _guess(self, node: int, rows: Tensor | None, *, noisy: bool) -> Row:
        """What decided on one guess, as far as the draft can be asked."""
        tree, parent = self.tree, self.tree.parents[node]
        token, row = tree.tokens[node], tree.rows[node]
        told = {"node": node, **self._token(token), "after": self.text(tree.tokens[parent])}
        told["score"] = tree.scores[node]
        if rows is None:
            return told
        if row is None:
            return told | self._perturbed(rows[parent], token, tree.position(node), noisy=noisy)
        uniform = self.chance.uniform("sibling", tree.root_position, tree.slots(node))
        low, high = _interval(row, token)
        drawn = {"probability": float(row[token]), "uniform": uniform}
        return told | drawn | {"low": low, "high": high}

    def walked(self, events: list[Choice | Trial | FinalDraw]) -> Iterator[Step]:
        """A step per decision of the walk."""
        path: tuple[int, ...] = ()
        for event in events:
            if isinstance(event, Choice):
                yield self._choice(event, path)
                path += () if event.child is None else (event.child,)
            elif isinstance(event, Trial):
                yield self._trial(event, path)
                path += (event.child,) if event.accepted else ()
            else:
                yield self._final_draw(event, path)

    def _choice(self, event: Choice, path: tuple[int, ...]) -> Step:
        """What competes after a node, with its noise."""
        tree, position = self.tree, self.tree.position(event.node) + 1
        guessed = [tree.tokens[child] for child in tree.children(event.node)]
        logits, rows = self.logits[event.node], []
        for token in dict.fromkeys((*self.chance.rank(logits, position, SHOWN)[0], *guessed)):
            child = guessed.index(token) + 1 if token in guessed else 0
            row = self._token(token) | {"child": child, "chosen": token == event.token}
            rows.append(row | self._perturbed(logits, token, position))
        goes = "no child has it: the walk ends"
        if event.child is not None:
            goes = f"child {rows[0]['child']} has it: accepted"
        elif not guessed:
            goes = "nothing was guessed here: the walk ends"
        words = f"At position {position} the target chooses {self.text(event.token)!r}; {goes}."
        return Step("choose", words, tree, path, tuple(rows))

    def _trial(self, event: Trial, path: tuple[int, ...]) -> Step:
        """The coin of one child, and what is wanted, offered (1 for a token chosen without chance)
        and left, of its token and the likeliest others.
        """
        tree, child, offered = self.tree, event.child, self.tree.rows[event.child]
        token, probability = tree.tokens[child], min(1.0, event.ratio)
        number = self.chance.uniform("coin", tree.root_position, tree.slots(child))
        coin = {"probability": probability, "uniform": number}
        coin |= {"kept": event.accepted, "node": child}
        rows = []
        for one in dict.fromkeys((token, *_likeliest(event.wanted))):
            chance_of = float(one == token) if offered is None else float(offered[one])
            row = self._token(one) | {"wanted": float(event.wanted[one]), "offered": chance_of}
            rows.append(row | {"left": float(event.left[one])} | coin)
        words = (
            f"Child {tree.slots(child)[-1] + 1}, {self.text(token)!r}: kept with probability"
            f" {probability:.3f}; the number is {number:.3f}:"
            f" {'kept' if event.accepted else 'rejected'}."
        )
        return Step("coin", words, tree, path, tuple(rows))

    def _final_draw(self, event: FinalDraw, path: tuple[int, ...]) -> Step:
        """The number that draws the correction or bonus, and the parts of [0, 1) of its token and
        the likeliest others, in the order in which they lie there.
        """
        tree, rows = self.tree, []
        number = self.chance.uniform("emit", tree.root_position, tree.slots(event.node))
        for one in sorted({event.token, *_likeliest(event.wanted)}):
            low, high = _interval(event.wanted, one)
            row = self._token(one) | {"low": low, "high": high, "probability": high - low}
            rows.append(row | {"uniform": number, "chosen": one == event.token})
        after = "the target's distribution"
        if tree.children(event.node):
            after = f"what the rejected children left of {after}"
        words = f"From {after}, the number {number:.3f} draws {self.text(event.token)!r}."
        return Step("draw", words, tree, path, tuple(rows))

    def emitted(self, verdict: Verdict) -> Step:
        tree, last = self.tree, verdict.path[-1] if verdict.path else ROOT
        tokens = [(tree.tokens[node], tree.sources[node]) for node in verdict.path]
        tokens.append((verdict.bonus, "target"))
        name = "correction" if tree.children(last) else "bonus"
        words = (
            f"{len(verdict.path)} of {tree.guesses} guesses accepted, {len(tokens)} tokens emitted:"
            f" the last, the {name}, is the target's own."
        )
        numbers = tuple(self._token(token) | {"source": source} for token, source in tokens)
        return Step("emit", words, tree, verdict.path, numbers)

    def _token(self, token: int) -> Row:
        return {"token": token, "text": self.text(token)}

    def _perturbed(self, logits: Tensor, token: int, position: int, *, noisy: bool = True) -> Row:
        """A token's log-probability (unwarped at temperature 0), its noise, and their sum."""
        sampler = UNWARPED if self.chance.sampler.temperature == 0 else self.chance.sampler
        log_prob = float(sampler.probs(logits)[token].log())
        noise = self.chance.noise(position, [token])[0] if noisy else 0.0
        return {"log_probability": log_prob, "noise": noise, "sum": log_prob + noise}


def _deciding(draft: Draft) -> TreeDraft | ChainDraft | None:
    """The draft whose numbers decided: a tree or a chain, or the one inside a staged tree, which
    proposes the very same tree; None for others.
    """
    inner = draft.draft if isinstance(draft, StagedTree) else draft
    return inner if isinstance(inner, TreeDraft | ChainDraft) else None


def _likeliest(probs: Tensor) -> list[int]:
    return probs.argsort(descending=True, stable=True)[:SHOWN].tolist()


def _interval(probs: Tensor, token: int) -> tuple[float, float]:
    """The part of [0, 1) whose numbers draw this token."""
    cumulative = probs.double().cumsum(-1)
    total = float(cumulative[-1])
    low = float(cumulative[token - 1]) / total if token else 0.0
    return low, float(cumulative[token]) / total
