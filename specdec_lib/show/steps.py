"""One round step by step, as data, with every random number that decided something in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel, Rule, Verdict
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import UNWARPED, Choice, FinalDraw, Trial
from specdec_lib.drafts.trees.growing import TreeDraft

SHOWN = 6  # candidates of a choice or a distribution, at least, beside what decides
LAST = 14  # tokens of the context that are told
Row = dict[str, object]


@dataclass(frozen=True)
class Step:
    """One step of a round."""

    kind: str  # "context", "propose", "score", "choose", "coin", "draw" or "emit"
    words: str  # what happens, in a sentence
    tree: TokenTree  # the guesses so far
    path: tuple[int, ...] = ()  # the accepted nodes so far
    numbers: tuple[Row, ...] = ()  # a row per number or candidate: see `figures.step`


def steps_of(
    target: LanguageModel,
    draft: TreeDraft,
    context: Context,
    chance: Chance,
    *,
    rule: Rule,
    text: Callable[[int], str],
) -> list[Step]:
    """The steps of the first round after `context`: the context, one step per level of guesses, the
    target's pass, one step per decision of the walk, and what is emitted. `text` gives a token's.

    draft    with "ranked" siblings where the rule is `look_up`, with "distinct" ones for `reject`
    """
    tree = draft.propose(context, chance).cut(target.max_positions - len(context))
    logits = target.score(context, tree)
    explained, events = _Explained(tree, logits, chance, text), []
    verdict = rule(tree, logits, chance, trace=events.append)
    known = f"{len(context)} tokens are known; the last is the root, at position"
    scored = f"The target reads all {len(tree)} nodes in one pass, a row of logits each"
    end = ({"text": text(token), "source": "context"} for token in context.tokens[-LAST:])
    return [
        Step("context", f"{known} {tree.root_position}.", tree.cut(0), numbers=tuple(end)),
        *explained.proposed(draft, context),
        Step("score", f"{scored}; a row sees the prompt, its ancestors and itself.", tree),
        *explained.walked(events),
        explained.emitted(verdict),
    ]


@dataclass(frozen=True)
class _Explained:
    tree: TokenTree
    logits: Float[Tensor, "nodes vocab"]
    chance: Chance
    text: Callable[[int], str]

    def proposed(self, draft: TreeDraft, context: Context) -> Iterator[Step]:
        tree, how = self.tree, "log-probability and the position's noise, which the target shares"
        if self.chance.sampler.temperature == 0:
            how = "probability: at temperature 0 there is no noise"
        if draft.siblings == "distinct":
            how = "one draw per guess from its distribution, without what was drawn before"
        part, number = tree.above(tree.parents[1:])
        read = draft.model.score(context, part)
        for depth in range(1, max(tree.depths) + 1):
            nodes = [node for node in range(len(tree)) if tree.depths[node] == depth]
            what = "1 guess" if len(nodes) == 1 else f"{len(nodes)} guesses"
            words = f"The draft proposes {what} for position {tree.position(nodes[0])}, by {how}."
            rows = [self._guess(node, read[number[tree.parents[node]]]) for node in nodes]
            yield Step("propose", words, tree.cut(depth), numbers=tuple(rows))

    def _guess(self, node: int, logits: Float[Tensor, " vocab"]) -> Row:
        """What decided on one guess: the draft's logits with noise, or the number that drew it."""
        tree, token, row = self.tree, self.tree.tokens[node], self.tree.rows[node]
        told = {"node": node} | self._token(token)
        told |= {"after": self.text(tree.tokens[tree.parents[node]]), "score": tree.scores[node]}
        if row is None:
            return told | self._perturbed(logits, token, tree.position(node))
        uniform = self.chance.uniform("sibling", tree.root_position, tree.slots(node))
        return told | {"uniform": uniform} | _part(row, token)

    def walked(self, events: list[Choice | Trial | FinalDraw]) -> Iterator[Step]:
        path: tuple[int, ...] = ()
        told = {Choice: self._choice, Trial: self._trial, FinalDraw: self._final_draw}
        for event in events:
            yield told[type(event)](event, path)
            chosen = isinstance(event, Choice) and event.child is not None
            if chosen or (isinstance(event, Trial) and event.accepted):
                path += (event.child,)

    def _choice(self, event: Choice, path: tuple[int, ...]) -> Step:
        """What competes after a node, with its noise."""
        tree, position = self.tree, self.tree.position(event.node) + 1
        guessed = [tree.tokens[child] for child in tree.children(event.node)]
        logits, rows = self.logits[event.node], []
        for token in dict.fromkeys((*self.chance.rank(logits, position, SHOWN)[0], *guessed)):
            child = guessed.index(token) + 1 if token in guessed else 0
            row = self._token(token) | {"child": child, "chosen": token == event.token}
            rows.append(row | self._perturbed(logits, token, position))
        goes = f"{'no child has it' if guessed else 'nothing was guessed here'}: the walk ends"
        if event.child is not None:
            goes = f"child {rows[0]['child']} has it: accepted"
        words = f"At position {position} the target chooses {self.text(event.token)!r}; {goes}."
        return Step("choose", words, tree, path, tuple(rows))

    def _trial(self, event: Trial, path: tuple[int, ...]) -> Step:
        """The coin of one child; wanted, offered and left of its token and the likeliest others."""
        tree, child = self.tree, event.child
        token, probability = tree.tokens[child], min(1.0, event.ratio)
        number = self.chance.uniform("coin", tree.root_position, tree.slots(child))
        coin, rows = {"probability": probability, "uniform": number, "kept": event.accepted}, []
        known = {"wanted": event.wanted, "offered": tree.rows[child], "left": event.left}
        for one in dict.fromkeys((token, *_likeliest(event.wanted))):
            probs = {name: float(row[one]) for name, row in known.items()}
            rows.append(self._token(one) | probs | coin)
        end = "kept" if event.accepted else "rejected"
        words = f"Child {tree.slots(child)[-1] + 1}, {self.text(token)!r}: kept with probability"
        words += f" {probability:.3f}; the number is {number:.3f}: {end}."
        return Step("coin", words, tree, path, tuple(rows))

    def _final_draw(self, event: FinalDraw, path: tuple[int, ...]) -> Step:
        """The number that draws the last token, and the parts of [0, 1) it and others lie in."""
        tree, rows = self.tree, []
        number = self.chance.uniform("emit", tree.root_position, tree.slots(event.node))
        for one in sorted({event.token, *_likeliest(event.wanted)}):
            row = self._token(one) | _part(event.wanted, one)
            rows.append(row | {"uniform": number, "chosen": one == event.token})
        left = "what the rejected children left of " if tree.children(event.node) else ""
        words = f"From {left}the target's distribution, the number {number:.3f} draws"
        return Step("draw", f"{words} {self.text(event.token)!r}.", tree, path, tuple(rows))

    def emitted(self, verdict: Verdict) -> Step:
        tree, last = self.tree, verdict.path[-1] if verdict.path else ROOT
        tokens = [(tree.tokens[node], tree.sources[node]) for node in verdict.path]
        tokens.append((verdict.bonus, "target"))
        name = "correction" if tree.children(last) else "bonus"
        words = f"{len(verdict.path)} of {tree.guesses} guesses accepted, {len(tokens)} tokens"
        words += f" emitted: the last, the {name}, is the target's own."
        numbers = tuple(self._token(token) | {"source": source} for token, source in tokens)
        return Step("emit", words, tree, verdict.path, numbers)

    def _token(self, token: int) -> Row:
        return {"token": token, "text": self.text(token)}

    def _perturbed(self, logits: Float[Tensor, " vocab"], token: int, position: int) -> Row:
        """A token's log-probability (unwarped at temperature 0), its noise, and their sum."""
        sampler = UNWARPED if self.chance.sampler.temperature == 0 else self.chance.sampler
        log_prob = float(sampler.probs(logits)[token].log())
        [noise] = self.chance.noise(position, [token])
        return {"log_probability": log_prob, "noise": noise, "sum": log_prob + noise}


def _likeliest(probs: Tensor) -> list[int]:
    return probs.argsort(descending=True, stable=True)[:SHOWN].tolist()


def _part(probs: Tensor, token: int) -> Row:
    """The part of [0, 1) whose numbers draw this token."""
    cumulative = probs.double().cumsum(-1)
    ends = (cumulative / cumulative[-1]).tolist()
    return {"low": ends[token - 1] if token else 0.0, "high": ends[token]}
