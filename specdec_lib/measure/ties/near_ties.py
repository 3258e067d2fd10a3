"""Where two texts of one model part, and why: rounding between two tokens that are nearly as good,
or a bug.

A model computes a row of logits beside other rows, in one piece or in several, and in low precision
each way gives slightly other numbers. Where the two best tokens lie closer together than that,
either may win, and from there on the texts differ: that is rounding. Where they lie further apart,
or where a pass over a tree gives other numbers than passes over plain text, or these differ by more
than rounding ever makes up, it is a bug.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
# So is a plain pass that moves them by more of their last bits, or a larger share of the largest,
# 16 bits in bfloat16. Seen were 10 bits in float32
BITS, SHARE = (
    256,
    1 / 8,
)  # and 1 in bfloat16 (trained, up to 6 layers), 38 and 5 (random, 24 layers)
LAST_BIT, TREE = "the last bit", "a tree"
VERDICTS = ROUNDING, BUG, EARLY = "rounding", "bug", "one stops early"


@dataclass(frozen=True)
class NearTie:
    """The first token in which two texts differ.

    place     counted from the first generated token, from 0
    tokens    of either text; None where it has ended
    gaps      nats by which each lies below the model's own choice there, noise included: see
              `gaps`; NaN for None
    moved     how far the row's logits move with the way it is computed, by way: the largest
              difference from reading token by token
    scale     temperature: a logit counts for so much less
    wild      a plain pass that moves them further is wrong
    """

    place: int
    tokens: tuple[int | None, int | None]
    gaps: tuple[float, float]
    moved: Mapping[str, float]
    scale: float = 1.0
    wild: float = math.inf

    @property
    def margin(self) -> float:
        """Nats by which the worse of the two lies below the model's own choice."""
        return max(self.gaps)

    @property
    def noise(self) -> float:
        """Nats by which rounding may move one token against another: both ends of the largest
        movement between plain passes.
        """
        return 2 * self._plain / self.scale

    @property
    def _plain(self) -> float:
        return max((size for way, size in self.moved.items() if way != TREE), default=0.0)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if None in self.tokens:
            return EARLY
        crooked = self.moved.get(TREE, 0.0) > SLACK * self._plain
        return (
            ROUNDING
            if self.margin <= self.noise and self._plain <= self.wild and not crooked
            else BUG
        )

    def report(self, text: Callable[[int], str] = str) -> str:
        """The finding in three lines.

        text    what a token stands for
        """
        one, other = ("the end" if token is None else repr(text(token)) for token in self.tokens)
        head = (
            f"{self.verdict}: the texts part at generated token {self.place}, {one} against {other}"
        )
        if self.verdict == EARLY:
            return f"{head}; up to there they are equal"
        ways = ", ".join(f"{way} {size:.2g}" for way, size in self.moved.items())
        ratio = f"{self.margin / self.noise:.2g} times" if self.noise else "and not"
        return f"{head}\nmargin {self.margin:.3g} nats, {ratio} the {self.noise:.3g} that rounding moves here\nlogits moved by: {ways}"


def near_tie(
    model: LanguageModel,
    prompt: Context | Sequence[int],
    one: Sequence[int],
    other: Sequence[int],
    chance: Chance | None = None,
) -> NearTie | None:
    """Where two continuations of a prompt part, judged by the model that both claim to be of; None
    if they are equal.

    chance    the seed and sampler that both were decoded with; None is greedy

    The model forgets what it has read, because its noise is measured by reading the text in several
    ways.
    Raises ValueError if the prompt is empty, or a text does not fit the model.
    """
    place = parting(one, other)
    if place is None:
        return None
    start = prompt if isinstance(prompt, Context) else Context.of(prompt)
    tokens = tuple(text[place] if place < len(text) else None for text in (one, other))
    context = start.extended(tuple(one[:place]))
    if None in tokens:
        return NearTie(place, tokens, (math.nan, math.nan), {})
    chance = chance or Chance(0)
    row, sizes = _read(model, context, 1), moved(model, context)
    below, wild = (
        tuple(gaps(row, len(context), tokens, chance)),
        sizes[LAST_BIT] * min(BITS, SHARE / _epsilon(model, row)),
    )
    return NearTie(place, tokens, below, sizes, chance.sampler.temperature or 1.0, wild)


def gaps(
    logits: Float[Tensor, " vocab"], position: int, tokens: Sequence[int], chance: Chance
) -> list[float]:
    """By how many nats rounding would have to move logits against one another for each of these
    tokens to be chosen.

    That is `Chance.gaps`, but at the edge of top-k: there a token may come in, over the k-th logit,
    and one that is better may fall out, below the next; inf where top-p excludes it.
    """
    found, sampler = chance.gaps(logits, position, tokens), chance.sampler
    if (
        sampler.temperature == 0
        or sampler.top_p < 1
        or sampler.top_k is None
        or sampler.top_k >= len(logits)
    ):
        return found
    law = logits.double().cpu() / sampler.temperature
    last, following = law.sort(descending=True).values[sampler.top_k - 1 : sampler.top_k + 1]
    noisy = law + torch.tensor(chance.noise(position, range(len(law))), dtype=torch.float64)
    rivals = [
        torch.minimum(noisy - noisy[token], law - following)[(law >= last) & (noisy > noisy[token])]
        for token in tokens
    ]
    return [
        max(0.0, float(last - law[token]), *rival.tolist())
        for token, rival in zip(tokens, rivals, strict=True)
    ]


def parting(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place at which two texts differ, which may be the end of the shorter; None if they
    are equal.
    """
    shorter = min(len(one), len(other))
    return next(
        (place for place in range(shorter) if one[place] != other[place]),
        None if len(one) == len(other) else shorter,
    )


def moved(model: LanguageModel, context: Context) -> dict[str, float]:
    """How far the logits after `context` move with the way they are computed: by way, the largest
    difference from reading token by token.

    "2 rows", …     the generated text (or the end of the prompt) read in pieces of so many tokens
    "one pass"      everything at once
    "the last bit"  how much one bit is in the largest of them
    "a tree"        the last tokens as the right path through a tree with wrong siblings and their
                    children, which must not be seen

    inf where a row holds NaN or an infinity that the other does not.
    """
    plain = _read(model, context, 1)
    ways = {f"{rows} rows": _read(model, context, rows) for rows in PIECES} | {
        "one pass": _read(model, context, len(context))
    }
    if len(context) > 1:
        ways[TREE] = _through_tree(model, context)
    largest = max(plain[plain.isfinite()].abs().tolist(), default=0.0)
    return {way: _distance(row, plain) for way, row in ways.items()} | {
        LAST_BIT: largest * _epsilon(model, plain)
    }


def _distance(one: Float[Tensor, " vocab"], other: Float[Tensor, " vocab"]) -> float:
    """The largest difference of two rows; inf where one holds NaN, or an infinity that the other
    does not.
    """
    size = torch.where(
        one == other, 0.0, (one.double() - other.double()).abs()
    )  # −inf − −inf is no movement
    return float(size.nan_to_num(nan=math.inf, posinf=math.inf).max())


def _epsilon(model: LanguageModel, row: Float[Tensor, " vocab"]) -> float:
    """Of the coarser of both, weights and logits: a model may compute in low precision and hand
    over float32.
    """
    kinds = {row.dtype, getattr(getattr(model, "model", None), "dtype", row.dtype)}
    return max(torch.finfo(kind).eps for kind in kinds if kind.is_floating_point)


def _read(model: LanguageModel, context: Context, rows: int) -> Float[Tensor, " vocab"]:
    """The logits after a context whose prompt was read in one pass and the rest in passes of
    `rows`; all of it in one if that is its length.
    """
    model.forget()
    total = len(context)
    start = total if rows >= total else min(context.prompt_tokens, max(1, total - READ_AGAIN))
    for end in range(start, total, rows):
        model.score(part := _first(context, end), TokenTree.rooted(part))
    return model.score(context, TokenTree.rooted(context))[ROOT]


def _through_tree(model: LanguageModel, context: Context) -> Float[Tensor, " vocab"]:
    """The same logits, as those of a node with wrong siblings, below others that have children;
    what nothing follows has none.
    """
    model.forget()
    depth = min(BRANCHED, len(context) - 1)
    tree, node, decoys = TokenTree.rooted(start := _first(context, len(context) - depth)), ROOT, []
    for token in context.tokens[-depth:]:
        wrong = [
            one
            for step in range(1, DECOYS + 1)
            if (one := (token + step) % model.vocabulary) != token
        ]
        siblings, below = [*wrong[:1], token, *wrong[1:]], [token] * len(decoys)
        first, count = len(tree) + len(below), len(below) + len(siblings)
        tree = tree.grown(
            [*below, *siblings], [*decoys, *[node] * len(siblings)], source="", scores=[1.0] * count
        )
        node = first + siblings.index(token)
        decoys = [place for place in range(first, len(tree)) if place != node]
    return model.score(start, tree)[node]


def _first(context: Context, count: int) -> Context:
    return Context(context.tokens[:count], min(context.prompt_tokens, count), context.source)
