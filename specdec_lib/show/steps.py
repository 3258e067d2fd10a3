"""One round step by step, as data, with every random number that decided something in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.loop import check_arguments
from specdec_lib.core.protocols import Draft, LanguageModel, Rule, Verdict
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import UNWARPED, ChildTest, Choice, FinalDraw, look_up, reject
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

SHOWN = 6  # candidates of a choice or a distribution, at least, beside what decides
LAST = 14  # tokens of the context that are told
WAYS = {  # how a draft chooses, by the kind of its siblings
    "ranked": "log-probability and the position's noise, which the target shares",
    "top": "probability alone",
    "iid": "one draw per guess from its distribution",
    "distinct": "one draw per guess from its distribution, without what was drawn before",
}
Row = dict[str, Any]


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

    draft    any draft; the numbers behind its guesses are told of a tree, a chain or a staged tree
             of one model. Another draft's guesses come with their scores alone
    rule     `look_up` or `reject`
    text     gives a token's text

    Raises ValueError for another rule, and for what `decode` refuses.
    """
    if rule not in (look_up, reject):
        name = getattr(rule, "__name__", repr(rule))
        raise ValueError(f"the steps of a round are told for look_up and reject, got {name}")
    check_arguments(target, draft, context)
    tree = draft.propose(context, chance).cut(target.max_positions - len(context))
    logits = target.score(context, tree)
    explained = _Explained(tree, logits, chance, text)
    events: list[Choice | ChildTest | FinalDraw] = []
    walk = look_up if rule is look_up else reject
    verdict = walk(tree, logits, chance, trace=events.append)
    known = f"{len(context)} tokens are known; the last is the root, at position"
    scored = f"The target reads all {len(tree)} nodes in one pass, a row of logits each"
    last = context.tokens[-LAST:]
    end: list[Row] = [{"text": text(token), "source": "context"} for token in last]
    return [
        Step("context", f"{known} {tree.root_position}.", tree.cut(0), numbers=tuple(end)),
        *explained.proposed(draft, context),
        Step("score", f"{scored}; a row sees the prompt, its ancestors and itself.", tree),
        *explained.walked(events),
        explained.emitted(verdict),
    ]


@dataclass(frozen=True)
class _Explained:
    """A round's tree and the target's logits after each of its nodes, in words and numbers."""

    tree: TokenTree
    logits: Float[Tensor, "nodes vocab"]
    chance: Chance
    text: Callable[[int], str]

    def proposed(self, draft: Draft, context: Context) -> Iterator[Step]:
        """A step per level of guesses, with what decided on each where the draft can be asked."""
        tree = self.tree
        maker = draft.draft if isinstance(draft, StagedTree) else draft  # makes the very same tree
        reasons = None
        how = "; it tells no numbers of what decided"
        if isinstance(maker, TreeDraft | ChainDraft):
            reasons = self._reasons(maker, context)
            how = f", by {self._way(maker.siblings)}"
        for depth in range(1, max(tree.depths) + 1):
            nodes = [node for node in range(len(tree)) if tree.depths[node] == depth]
            what = "1 guess" if len(nodes) == 1 else f"{len(nodes)} guesses"
            words = f"The draft proposes {what} for position {tree.position(nodes[0])}{how}."
            rows = [self._guess(node) for node in nodes]
            if reasons is not None:
                rows = [row | reasons[row["node"]] for row in rows]
            yield Step("propose", words, tree.cut(depth), numbers=tuple(rows))

    def _way(self, siblings: str) -> str:
        if siblings == "ranked" and self.chance.sampler.temperature == 0:
            return "probability: at temperature 0 there is no noise"
        return WAYS[siblings]

    def _guess(self, node: int) -> Row:
        """A guess, the token it comes after, and the score of its path."""
        tree = self.tree
        row = {"node": node} | self._token(tree.tokens[node])
        row["after"] = self.text(tree.tokens[tree.parents[node]])
        row["score"] = tree.scores[node]
        return row

    def _reasons(self, maker: TreeDraft | ChainDraft, context: Context) -> dict[int, Row]:
        """What decided on each guess: its log-probability and noise, or the number that drew it."""
        tree = self.tree
        parents, number = tree.above(tree.parents[1:])
        logits = maker.model.score(context, parents)
        noisy = maker.siblings == "ranked"
        reasons = {}
        for node in range(1, len(tree)):
            token = tree.tokens[node]
            drawn_from = tree.rows[node]
            if drawn_from is None:
                after = logits[number[tree.parents[node]]]
                reasons[node] = self._perturbed(after, token, tree.position(node), noisy)
            else:
                uniform = self.chance.uniform("sibling", tree.root_position, tree.slots(node))
                reasons[node] = {"uniform": uniform} | _part(drawn_from, token)
        return reasons

    def walked(self, events: list[Choice | ChildTest | FinalDraw]) -> Iterator[Step]:
        path: tuple[int, ...] = ()
        told: dict[type, Callable[..., Step]] = {
            Choice: self._choice,
            ChildTest: self._trial,
            FinalDraw: self._final_draw,
        }
        for event in events:
            yield told[type(event)](event, path)
            if isinstance(event, Choice) and event.child is not None:
                path += (event.child,)
            if isinstance(event, ChildTest) and event.accepted:
                path += (event.child,)

    def _choice(self, event: Choice, path: tuple[int, ...]) -> Step:
        """What competes after a node, with its noise."""
        tree = self.tree
        position = tree.position(event.node) + 1
        guessed = [tree.tokens[child] for child in tree.children(event.node)]
        logits = self.logits[event.node]
        rows = []
        for token in dict.fromkeys((*self.chance.rank(logits, position, SHOWN)[0], *guessed)):
            child = guessed.index(token) + 1 if token in guessed else 0
            row = self._token(token) | {"child": child, "chosen": token == event.token}
            rows.append(row | self._perturbed(logits, token, position))
        if event.child is not None:
            goes = f"child {rows[0]['child']} has it: accepted"
        elif guessed:
            goes = "no child has it: the walk ends"
        else:
            goes = "nothing was guessed here: the walk ends"
        words = f"At position {position} the target chooses {self.text(event.token)!r}; {goes}."
        return Step("choose", words, tree, path, tuple(rows))

    def _trial(self, event: ChildTest, path: tuple[int, ...]) -> Step:
        """The coin of one child; wanted, offered and left of its token and the likeliest others."""
        tree = self.tree
        child = event.child
        token = tree.tokens[child]
        probability = min(1.0, event.ratio)
        number = self.chance.uniform("coin", tree.root_position, tree.slots(child))
        coin = {"probability": probability, "uniform": number, "kept": event.accepted}
        drawn_from = tree.rows[child]
        rows = []
        for one in dict.fromkeys((token, *_likeliest(event.wanted))):
            row = self._token(one)
            row["wanted"] = float(event.wanted[one])
            row["offered"] = float(one == token if drawn_from is None else drawn_from[one])
            row["left"] = float(event.left[one])
            rows.append(row | coin)
        end = "kept" if event.accepted else "rejected"
        words = (
            f"Child {tree.slots(child)[-1] + 1}, {self.text(token)!r}: kept with probability"
            f" {probability:.3f}; the number is {number:.3f}: {end}."
        )
        return Step("coin", words, tree, path, tuple(rows))

    def _final_draw(self, event: FinalDraw, path: tuple[int, ...]) -> Step:
        """The number that draws the last token, and the parts of [0, 1) it and others lie in."""
        tree = self.tree
        rows = []
        number = self.chance.uniform("emit", tree.root_position, tree.slots(event.node))
        for one in sorted({event.token, *_likeliest(event.wanted)}):
            row = self._token(one) | _part(event.wanted, one)
            rows.append(row | {"uniform": number, "chosen": one == event.token})
        left = "what the rejected children left of " if tree.children(event.node) else ""
        words = (
            f"From {left}the target's distribution, the number {number:.3f} draws"
            f" {self.text(event.token)!r}."
        )
        return Step("draw", words, tree, path, tuple(rows))

    def emitted(self, verdict: Verdict) -> Step:
        tree = self.tree
        last = verdict.path[-1] if verdict.path else ROOT
        tokens = [(tree.tokens[node], tree.sources[node]) for node in verdict.path]
        tokens.append((verdict.bonus, "target"))
        name = "correction" if tree.children(last) else "bonus"
        words = (
            f"{len(verdict.path)} of {tree.guesses} guesses accepted, {len(tokens)} tokens"
            f" emitted: the last, the {name}, is the target's own."
        )
        numbers = tuple(self._token(token) | {"source": source} for token, source in tokens)
        return Step("emit", words, tree, verdict.path, numbers)

    def _token(self, token: int) -> Row:
        return {"token": token, "text": self.text(token)}

    def _perturbed(
        self, logits: Float[Tensor, " vocab"], token: int, position: int, noisy: bool = True
    ) -> Row:
        """A token's log-probability (unwarped at temperature 0), its noise, and their sum.

        noisy    whether noise had a say; without it, it is 0
        """
        sampler = UNWARPED if self.chance.sampler.temperature == 0 else self.chance.sampler
        log_prob = float(sampler.probs(logits)[token].log())
        noise = self.chance.noise(position, [token])[0] if noisy else 0.0
        return {"log_probability": log_prob, "noise": noise, "sum": log_prob + noise}


def _likeliest(probs: Tensor) -> list[int]:
    return probs.argsort(descending=True, stable=True)[:SHOWN].tolist()


def _part(probs: Tensor, token: int) -> Row:
    """The part of [0, 1) whose numbers draw this token."""
    cumulative = probs.double().cumsum(-1)
    ends = (cumulative / cumulative[-1]).tolist()
    return {"low": ends[token - 1] if token else 0.0, "high": ends[token]}
