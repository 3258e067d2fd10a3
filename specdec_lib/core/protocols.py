"""The protocols of models, drafts and rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add, sub
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree

NodeLogits = Float[Tensor, "nodes vocab"]
"""A row of logits after each node of a tree, the root first."""


@dataclass(frozen=True)
class Usage:
    """What a model has computed: forward passes, tokens run through them (rows), and seconds, which
    the model itself clocks around each.
    """

    passes: int = 0
    rows: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*map(sub, vars(self).values(), vars(other).values()))


@runtime_checkable
class LanguageModel(Protocol):
    """A model that gives next-token logits after every node of a tree.

    name             in records and figures; unique within one generation
    vocabulary       number of tokens; they are 0…vocabulary − 1
    max_positions    every token's absolute position must be below it
    runtime          what computes its passes, such as "reference: …"; empty for an n-gram table
    usage            what it has computed since it was made; None for an n-gram table
    """

    name: str
    vocabulary: int
    max_positions: int

    @property
    def runtime(self) -> str: ...

    @property
    def usage(self) -> Usage | None: ...

    def forget(self) -> None:
        """Clear the KV cache and other state of earlier contexts; no result changes."""

    def score(self, context: Context, tree: TokenTree) -> NodeLogits:
        """Row i: the logits of the token after node i.  Raises ValueError if the tree is not rooted
        at the context's end, or a token or position is out of range.
        """


@runtime_checkable
class HasVocabulary(Protocol):
    """A model or draft that knows how many tokens there are; None if any number fits it."""

    @property
    def vocabulary(self) -> int | None: ...


@runtime_checkable
class SourceReader(Protocol):
    """A language model with an encoder, which can read a context's source before any token."""

    def read_source(self, context: Context) -> None:
        """Run the encoder on `context.source`, unless its output is cached."""


Ranked = tuple[Sequence[int], Sequence[float]]
"""Children of a node, best first: their tokens, and each one's score ÷ the node's."""


@runtime_checkable
class TreeGrower(Protocol):
    """A language model that also chooses a node's children, and grows a whole tree in one call."""

    def grow(
        self,
        context: Context,
        chance: Chance,
        *,
        widths: Sequence[int],
        budget: int | None,
        floor: float,
        match: MatchTable,
        scout: tuple[object, int, str] | None = None,
    ) -> TokenTree | None:
        """The tree of "ranked" siblings that a `TreeDraft` would grow from `score`, up to rounding
        of scores; None for settings without support.

        widths   per depth, within the model's positions; with a budget, pass it as each width
        scout    of a `StagedTree`: a `Guesser`, `guided`, and the source of what it guessed too
        """

    def rank(
        self, context: Context, tree: TokenTree, chance: Chance, *, width: int, match: MatchTable
    ) -> Callable[[int], Ranked] | None:
        """Read the tree in one pass, as `score` does; a function from a node to its `width` best
        "ranked" children, or None without support.
        """


@runtime_checkable
class Draft(Protocol):
    """An object that guesses how a context continues."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on: a tree rooted at its last token, maybe the root alone.

        The row [vocab] of a token that was drawn must be the exact distribution it was drawn from,
        given its earlier siblings, and whether a node exists must not depend on tokens drawn at it,
        below it, or at or below a later sibling; else `reject` is biased. Other rows are None.
        """


@runtime_checkable
class Learner(Protocol):
    """A draft, nested or not, that learns from every verified tree, whoever guessed it."""

    def learn(self, context: Context, tree: TokenTree, target_logits: NodeLogits) -> None:
        """Take in the target's logits after each node of the tree that continued `context`."""


@dataclass(frozen=True)
class Verdict:
    """What a rule decides about a tree.

    path     the accepted nodes, from the child of the root down
    bonus    one more token, the target's own: a correction after a rejection, else a bonus
    """

    path: tuple[int, ...]
    bonus: int


@runtime_checkable
class Rule(Protocol):
    """A function that decides which guesses of a tree a target accepts."""

    def __call__(self, tree: TokenTree, target_logits: NodeLogits, chance: Chance) -> Verdict:
        """Decide from the arguments alone; `target_logits` are those after each node."""


def check_root(context: Context, tree: TokenTree, vocabulary: int, max_positions: int) -> None:
    """Raise ValueError unless `tree` continues `context` and both fit the model."""
    root, wanted = (tree.tokens[ROOT], tree.root_position), (context.tokens[-1], len(context) - 1)
    if root != wanted:
        rooted = "a tree is rooted at its context's last token: token {} at position {}"
        raise ValueError(f"{rooted.format(*wanted)}, got token {root[0]} at position {root[1]}")
    if (largest := max(max(context.tokens), max(tree.tokens))) >= vocabulary:
        raise ValueError(f"tokens must be below the vocabulary's size {vocabulary}, got {largest}")
    if (deepest := tree.root_position + max(tree.depths)) >= max_positions:
        limit = f"the context length {max_positions}"
        raise ValueError(f"positions must be below {limit}, got {deepest}")
