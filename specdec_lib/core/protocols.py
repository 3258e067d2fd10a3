"""The protocols of models, drafts and rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
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
        return Usage(
            self.passes + other.passes, self.rows + other.rows, self.seconds + other.seconds
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.passes - other.passes, self.rows - other.rows, self.seconds - other.seconds
        )


@runtime_checkable
class LanguageModel(Protocol):
    """A model that gives next-token logits after every node of a tree.

    name             in records and figures; unique within one generation
    vocabulary       number of tokens; they are 0…vocabulary − 1
    max_positions    every token's absolute position must be below it
    runtime          what computes its passes, such as "reference: …"; empty for an n-gram table
    usage            what it has computed since it was made; None for an n-gram table
    """

    @property
    def name(self) -> str: ...

    @property
    def vocabulary(self) -> int: ...

    @property
    def max_positions(self) -> int: ...

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
        ...


@runtime_checkable
class HasVocabulary(Protocol):
    """A model or draft with a fixed vocabulary size; None means that any size fits."""

    @property
    def vocabulary(self) -> int | None: ...


@runtime_checkable
class SourceReader(Protocol):
    """A language model with an encoder, which can read a context's source before any token."""

    def read_source(self, context: Context) -> None:
        """Run the encoder on `context.source`, unless its output is cached."""


@runtime_checkable
class Rewinder(Protocol):
    """A language model that can go back to the beginning of what it has read."""

    def forget_after(self, context: Context) -> None:
        """As `forget`, but keep what was read of the beginning of this context."""


@runtime_checkable
class StateKeeper(Protocol):
    """A language model that hands out its hidden states, which another model reads."""

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the hidden states after these layers, counted from 0, of tokens that are read from
        now on.  Raises ValueError for layers that it lacks, or if it keeps those of others.
        """

    def states(self, context: Context, first: int) -> Float[Tensor, "tokens states width"]:
        """The hidden states that are kept of a context's tokens from the position `first` on, but
        for the last token: a function of these tokens. Those not read yet are read, and counted.
        """
        ...


@runtime_checkable
class StateReader(Protocol):
    """A language model that may read another one's hidden states."""

    @property
    def target(self) -> StateKeeper | None:
        """The model whose states it reads, None for a model that reads none. For a guess that the
        target has not read its own output at the token before takes their place: so it reads a tree
        level by level, and no scout saves it a pass.
        """


Ranked = tuple[Sequence[int], Sequence[float]]
"""Children of a node, best first: their tokens, and each one's score ÷ the node's."""


class Scout(NamedTuple):
    """A guesser that says, while a model grows a tree, which nodes to score next in the same pass.

    guesser    a compiled n-gram table and its limits, as the model's runtime takes it
    guided     how many nodes without logits it extends per pass, the best-scored first
    source     the name that nodes which it guessed too carry in the tree
    """

    guesser: Any
    guided: int
    source: str


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
        deepen: float = 0.0,
        scout: Scout | None = None,
    ) -> TokenTree | None:
        """Grow, in one call, the tree that a `TreeDraft` with "ranked" siblings would build from
        `score`, up to rounding of scores; None if the settings are not supported.

        widths    children per depth, within the model's positions; with a budget, that number at
                  every depth
        deepen    the least score of a guess that gets children
        scout     guesses what to score next, so that fewer passes are needed
        """

    def rank(
        self, context: Context, tree: TokenTree, chance: Chance, *, width: int, match: MatchTable
    ) -> Callable[[int], Ranked] | None:
        """Read the tree in one pass, as `score` does. Return a function that gives the `width` best
        "ranked" children of a node, or None if the settings are not supported.
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
        ...


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
        ...


def check_root(
    context: Context, tree: TokenTree, vocabulary: int, max_positions: int, name: str
) -> None:
    """Raise ValueError unless `tree` continues `context` and both fit the model of this name."""
    if (tree.tokens[ROOT], tree.root_position) != (context.tokens[-1], len(context) - 1):
        raise ValueError(
            f"a tree is rooted at its context's last token: token {context.tokens[-1]}"
            f" at position {len(context) - 1},"
            f" got token {tree.tokens[ROOT]} at position {tree.root_position}"
        )
    if (largest := max(max(context.tokens), max(tree.tokens))) >= vocabulary:
        raise ValueError(
            f"the tokens of {name} must be below the vocabulary's size {vocabulary}, got {largest}"
        )
    if (deepest := tree.root_position + max(tree.depths)) >= max_positions:
        raise ValueError(
            f"the positions of {name} must be below the context length {max_positions},"
            f" got {deepest}"
        )


def check_logits(logits: Tensor, name: str) -> None:
    """Raise ValueError unless every row of a model's logits has a finite maximum."""
    if logits.dtype not in (torch.float32, torch.float64):  # NumPy has no bfloat16
        logits = logits.float()
    highest = logits.numpy(force=True).max(axis=-1)  # NaN if any logit is
    if not np.isfinite(highest).all():
        wrong = highest[~np.isfinite(highest)][0]
        raise ValueError(
            f"the logits of {name} must hold no NaN or +inf and at least one finite value; the"
            f" maximum of a row is {float(wrong)}"
        )
