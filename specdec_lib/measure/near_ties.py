"""Where two texts of one model part, and why: rounding or a bug.

It is a bug where the two tokens lie further apart than logits move with the way they are computed,
where a pass over a tree gives other numbers than passes over plain text, or where these differ by
more than rounding ever makes up.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import ROOT, TokenTree

PIECES = (2, 5, 16)  # rows per pass in which the same text is read
READ_AGAIN = 16  # last tokens of a prompt that are read in pieces where nothing was generated
DECOYS = 2  # wrong siblings beside every right node of the tree pass
BRANCHED = 4  # right nodes in it
SLACK = 2.0  # a tree pass that moves logits so many times further than any plain pass does is wrong
# So is a plain pass that moves them by more of their last bits, or a larger share of the largest;
# seen were 10 bits in float32 and 1 in bfloat16 (trained, up to 6 layers), 38 and 5 (random, 24).
BITS = 256
SHARE = 1 / 8
TWO_PROGRAMS = 1e-3  # nats that another program's order of sums may decide between, in float32
LAST_BIT = "the last bit"
TREE = "a tree"
VERDICTS = ROUNDING, BUG, EARLY = "rounding", "bug", "one stops early"


@dataclass(frozen=True)
class NearTie:
    """The first token in which two texts differ.

    place     counted from the first generated token, from 0
    tokens    of either text; None where it has ended
    verdict   one of `VERDICTS`
    margin    nats by which the worse of the two lies below the model's own choice (`rounding_gaps`)
    noise     nats by which rounding may move one token against another
    moved     how far the row's logits move with the way it is computed (`logit_movements`)
    """

    place: int
    tokens: tuple[int | None, int | None]
    verdict: str
    margin: float = math.nan
    noise: float = math.nan
    moved: Mapping[str, float] = field(default_factory=dict)

    def report(self, text: Callable[[int], str] = str) -> str:
        """The finding in three lines."""
        one, other = ("the end" if token is None else repr(text(token)) for token in self.tokens)
        place = f"the texts part at generated token {self.place}, {one} against {other}"
        if self.verdict == EARLY:
            return f"{self.verdict}: {place}; up to there they are equal"
        ways = ", ".join(f"{way} {size:.2g}" for way, size in self.moved.items())
        ratio = f"{self.margin / self.noise:.2g} times" if self.noise else "and not"
        return (
            f"{self.verdict}: {place}\nmargin {self.margin:.3g} nats, {ratio} the {self.noise:.3g}"
            f" that rounding moves here\nlogits moved by: {ways}"
        )


def near_tie(
    model: LanguageModel,
    prompt: Sequence[int],
    one: Sequence[int],
    other: Sequence[int],
    chance: Chance | None = None,
    *,
    floor: float = 0.0,
) -> NearTie | None:
    """Where two continuations of a prompt part, judged by the model that both claim to be of; None
    if they are equal. The model forgets what it has read: it reads the text anew in several ways.

    chance    the seed and sampler that both were decoded with; None is greedy
    floor     nats that count as rounding however little the logits move
    """
    pairs = enumerate(zip_longest(one, other))
    place, tokens = next(((at, pair) for at, pair in pairs if pair[0] != pair[1]), (0, None))
    if tokens is None:
        return None
    if None in tokens:
        return NearTie(place, tokens, EARLY)
    context = Context.of(tuple(prompt)).extended(tuple(one[:place]))
    chance = chance or Chance(0)
    row = _read(model, context, 1)
    moved = logit_movements(model, context)
    margin = max(rounding_gaps(row, len(context), tokens, chance))
    plain = max(size for way, size in moved.items() if way != TREE)
    noise = 2 * plain / (chance.sampler.temperature or 1.0)
    right = plain <= moved[LAST_BIT] * min(BITS, SHARE / _epsilon(row))
    straight = moved.get(TREE, 0.0) <= SLACK * plain
    near = margin <= max(noise, floor)
    verdict = ROUNDING if near and right and straight else BUG
    return NearTie(place, tokens, verdict, margin, noise, moved)


def rounding_gaps(
    logits: Float[Tensor, " vocab"], position: int, tokens: Sequence[int], chance: Chance
) -> list[float]:
    """By how many nats rounding would have to move logits for each of these tokens to be chosen:
    `Chance.gaps`, but at the edge of top-k a token may come in, over the k-th logit, and a better
    one fall out, below the next.
    """
    found = chance.gaps(logits, position, tokens)
    sampler = chance.sampler
    most = sampler.top_k or len(logits)
    if sampler.temperature == 0 or sampler.top_p < 1 or most >= len(logits):
        return found
    scaled = logits.double().cpu() / sampler.temperature
    last, following = scaled.sort(descending=True).values[most - 1 : most + 1]
    noise = chance.noise(position, range(len(scaled)))
    noisy = scaled + torch.tensor(noise, dtype=torch.float64)
    allowed = scaled >= last
    found = []
    for token in tokens:
        lead = torch.minimum(noisy - noisy[token], scaled - following)
        rivals = lead[allowed & (noisy > noisy[token])].tolist()
        found.append(max(0.0, float(last - scaled[token]), *rivals))
    return found


def logit_movements(model: LanguageModel, context: Context) -> dict[str, float]:
    """By the way in which they are computed, the largest difference of the logits after `context`
    from reading token by token; inf where one row alone holds NaN or an infinity.

    "2 rows", …     the generated text (or the end of the prompt) read in pieces of so many tokens
    "the last bit"  how much one bit is in the largest of them
    "a tree"        the last tokens as the right path through a tree of wrong siblings
    """
    plain = _read(model, context, 1)
    ways = {f"{rows} rows": _read(model, context, rows) for rows in PIECES}
    ways["one pass"] = _read(model, context, len(context))
    if len(context) > 1:
        ways[TREE] = _through_tree(model, context)
    found = {way: _distance(row, plain) for way, row in ways.items()}
    largest = max(plain[plain.isfinite()].abs().tolist(), default=0.0)
    return found | {LAST_BIT: largest * _epsilon(plain)}


def _distance(one: Float[Tensor, " vocab"], other: Float[Tensor, " vocab"]) -> float:
    size = (one.double() - other.double()).abs()
    size = torch.where(one == other, 0.0, size)  # −inf − −inf is no movement
    return float(size.nan_to_num(nan=math.inf, posinf=math.inf).max())


def _epsilon(row: Float[Tensor, " vocab"]) -> float:
    """Of the coarsest precision that holds the whole row: a model may hand over a finer one."""
    coarse = (torch.bfloat16, torch.float16, torch.float32)
    fitting = (kind for kind in coarse if torch.equal(row.to(kind).to(row.dtype), row))
    return torch.finfo(next(fitting, row.dtype)).eps


def _read(model: LanguageModel, context: Context, rows: int) -> Float[Tensor, " vocab"]:
    """The logits after a context: the prompt in one pass, the rest in passes of `rows`."""
    model.forget()
    total = len(context)
    start = total if rows >= total else min(context.prompt_tokens, max(1, total - READ_AGAIN))
    for end in range(start, total, rows):
        model.score(part := _first(context, end), TokenTree.rooted(part))
    return model.score(context, TokenTree.rooted(context))[ROOT]


def _through_tree(model: LanguageModel, context: Context) -> Float[Tensor, " vocab"]:
    """The logits after the context's last token, read as a node with wrong siblings, below other
    nodes that have children.
    """
    model.forget()
    depth = min(BRANCHED, len(context) - 1)
    tree, node, decoys = TokenTree.rooted(start := _first(context, len(context) - depth)), ROOT, []
    for token in context.tokens[-depth:]:
        steps = ((token + step) % model.vocabulary for step in range(1, DECOYS + 1))
        wrong = [one for one in steps if one != token]
        siblings = [*wrong[:1], token, *wrong[1:]]
        below = [token] * len(decoys)
        first = len(tree) + len(below)
        parents = [*decoys, *[node] * len(siblings)]
        scores = [1.0] * len(parents)
        tree = tree.grown([*below, *siblings], parents, source="", scores=scores)
        node = first + siblings.index(token)
        decoys = [place for place in range(first, len(tree)) if place != node]
    return model.score(start, tree)[node]


def _first(context: Context, count: int) -> Context:
    return Context(context.tokens[:count], min(context.prompt_tokens, count), context.source)
