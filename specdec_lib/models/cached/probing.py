"""Whether a network may stand behind a cache of token paths: its configuration is read, and then a
few tokens are run, because what a kind of model does is known only by trying it.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from textwrap import shorten
from typing import Protocol
from weakref import WeakSet

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel, Usage
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.windows import FULL, SLIDING, narrow_windows
from specdec_lib.models.cut_head import CutHead

PLAIN = {FULL, "global", SLIDING}
WANTED = (
    "a token tree needs a decoder with causal attention, to all tokens or a window, and explicit"
    " positions, cached as keys and values by position"
)
GIVEN = 3  # tokens of the context of a probe, fewer for a model that reads less
BEYOND = 3  # positions of a probe beyond its context
NARROW = 2  # the window, in a probe, of layers that have one
TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 0.05,
    torch.bfloat16: 0.2,
}
"""Relative differences of logits that rounding explains; a wrong position or mask makes larger. Of
SmolLM2 rounding makes 3e-6 in float32 and up to .06 in bfloat16, a wrong mask or position .3 to 2.
"""

Plain = Callable[[Int[Tensor, "texts tokens"]], Float[Tensor, "texts tokens vocab"]]
"""A network's own logits after each token of some texts, computed without a cache."""

_probed: WeakSet[PreTrainedModel] = WeakSet()


def check_attention(model: PreTrainedModel) -> None:
    """Raises ValueError for a model whose configuration says that a tree mask would be wrong."""
    attention = model.config._attn_implementation
    taken = inspect.signature(model.forward).parameters
    text = model.config.get_text_config()
    fields = text.to_dict()
    readable = getattr(text, "max_position_embeddings", None)
    layers = {*(fields.get("layer_types") or ()), *(fields.get("attention_layers") or ())} - PLAIN
    other = ", ".join(sorted(layers))
    rope = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    ropes = [rope, *(one for one in rope.values() if isinstance(one, dict))]
    growing = any(
        one.get("rope_type", one.get("type")) in ("longrope", "dynamic", "su") for one in ropes
    )
    alibi = fields.get("alibi") or model.config.model_type in ("bloom", "mpt")
    reasons = {
        "is an encoder-decoder model": model.config.is_encoder_decoder,
        "has no head for text": model.get_output_embeddings() is None,
        f"has layers other than causal attention ({other})": layers,
        "takes positions from the mask (ALiBi)": alibi,
        "takes no position_ids": "position_ids" not in taken,
        "takes no logits_to_keep": "logits_to_keep" not in taken,
        "takes no past_key_values": "past_key_values" not in taken,
        "changes its positions with the length of the text": growing,
        f"runs {attention} attention, not sdpa or eager": attention not in ("sdpa", "eager", None),
        "names no max_position_embeddings": readable is None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"{WANTED}; {described(model)} {reason}")


def described(network: PreTrainedModel) -> str:
    """The kind of a network, and where it was loaded from if that is known."""
    kind = network.config.model_type
    place = network.config.name_or_path
    return f"{kind} ({place})" if place else kind


@dataclass(frozen=True)
class Probe:
    """Three passes over a context of a few tokens, `given`, and the tree of two guesses after it:
    `left`, and `right` with `below` under it. The second pass goes on to `last` after `below`.
    """

    given: tuple[int, ...]
    left: int
    right: int
    below: int
    last: int
    source: tuple[int, ...] | None = None

    @classmethod
    def of(cls, model: LanguageModel, network: PreTrainedModel, *, encoder: bool) -> "Probe":
        """Tokens for a model, none of them special; an encoder reads the first one alone."""
        if model.max_positions <= BEYOND:
            raise ValueError(
                f"a model must read more than {BEYOND} tokens; {described(network)} reads at most"
                f" {model.max_positions}"
            )
        if model.vocabulary < 2:
            raise ValueError(
                f"a model must know 2 tokens or more; {described(network)} has a vocabulary of"
                f" {model.vocabulary}"
            )
        length = min(GIVEN, model.max_positions - BEYOND)
        tokens = plain_tokens(model.vocabulary, special_tokens(network), length + 4)
        left, right, below, last = tokens[length:]
        source = tokens[:1] if encoder else None
        return cls(tokens[:length], left, right, below, last, source)

    @property
    def texts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two texts that differ in one token behind the context."""
        rest = (self.below, self.last)
        return (*self.given, self.right, *rest), (*self.given, self.left, *rest)

    def score(self, model: LanguageModel) -> Float[Tensor, "5 vocab"]:
        """The cached logits after the context, `left`, `right`, `below` and `last`."""
        context = Context.of(self.given, self.source)
        tree = TokenTree.rooted(context)
        tree = tree.grown([self.left, self.right], [0, 0], source="probe", scores=[1.0, 1.0])
        tree = tree.grown([self.below], [2], source="probe", scores=[1.0])
        longer = context.extended((self.right, self.below, self.last))
        rows = [model.score(context, tree), model.score(longer, TokenTree.rooted(longer))]
        return torch.cat(rows)

    def rows(self, plain: Float[Tensor, "2 tokens vocab"]) -> Float[Tensor, "5 vocab"]:
        """The same rows of the logits of both texts."""
        end = len(self.given)
        right, left = plain
        return torch.stack([right[end - 1], left[end], right[end], right[end + 1], right[end + 2]])


class Counting(LanguageModel, Protocol):
    """A model whose counts can be set."""

    usage: Usage


def check_by_probes(
    model: Counting, network: PreTrainedModel, plain: Plain, *, encoder: bool = False
) -> None:
    """Run a few tokens: no later token may change the logits after an earlier one, and those of a
    tree behind the cache must be those of the whole text without it; windows are `NARROW`
    meanwhile, so that these few tokens show them. The model has forgotten the tokens after that,
    and not counted them; a network that passed is not probed again.

    Raises ValueError otherwise, and for logits that are not finite.
    """
    if network in _probed:
        return
    probe = Probe.of(model, network, encoder=encoder)
    before = model.usage
    with prompt_of_head(network, probe.given), narrow_windows(network, NARROW):
        try:
            problem = _problem(model, network, plain, probe)
        finally:
            model.forget()
            model.usage = before
    if problem is not None:
        raise ValueError(f"{WANTED}; {described(network)} {problem}")
    _probed.add(network)


@torch.no_grad()
def _problem(
    model: LanguageModel, network: PreTrainedModel, plain: Plain, probe: Probe
) -> str | None:
    """What is wrong with a model, in words; None if nothing is."""
    try:
        logits = plain(torch.tensor(probe.texts, device=network.device))
    except Exception as error:  # of whatever code the kind of model has
        return f"cannot run a text of tokens alone ({_told(error)})"
    if logits.isnan().any() or logits.isposinf().any():
        return "gives logits that are NaN or infinite"
    most = tolerance(network)
    end = len(probe.given)
    if (change := difference(*logits[:, :end])) > most:
        return (
            "is bidirectional: another later token changes the logits after earlier ones by"
            f" {change:.2g} of their size"
        )
    try:
        cached = probe.score(model)
    except Exception as error:  # of whatever code the kind of model has
        return f"has no cache of keys and values by position ({_told(error)})"
    if (change := difference(cached, probe.rows(logits))) > most:
        return (
            "has other logits behind a cache, where positions are 0, 1, 2, … and a mask hides other"
            f" branches, than for a whole text: they differ by {change:.2g} of their size"
        )
    return None


def difference(found: Float[Tensor, "rows vocab"], wanted: Float[Tensor, "rows vocab"]) -> float:
    """The largest difference of two rows of logits, as a share of their spread. Tokens that are not
    scored (−inf) must be the same ones.
    """
    largest = 0.0
    for one, other in zip(found.double(), wanted.double(), strict=True):
        scored = other.isfinite()
        if not torch.equal(scored, one.isfinite()):
            return float("inf")
        spread = (other[scored] - other[scored].mean()).norm()
        apart = (one[scored] - other[scored]).norm()
        size = max(float(spread), 1e-6 * float(other[scored].norm()), 1e-30)
        largest = max(largest, float(apart) / size)
    return largest


def tolerance(network: PreTrainedModel) -> float:
    """The relative difference of logits up to which rounding explains it."""
    rounded = network.device.type == "cuda" and torch.get_float32_matmul_precision() != "highest"
    kind = torch.float16 if rounded and network.dtype == torch.float32 else network.dtype
    return TOLERANCES.get(kind, TOLERANCES[torch.bfloat16])


def special_tokens(network: PreTrainedModel) -> set[int]:
    """The token ids that a configuration names: padding, ends, images and the like."""
    found: set[int] = set()
    for config in (network.config, network.config.get_text_config()):
        for name, value in config.to_dict().items():
            if name.endswith(("token_id", "token_ids", "token_index")):
                found.update(value if isinstance(value, list) else [value])
    return found - {None}


def plain_tokens(vocabulary: int, special: set[int], count: int) -> tuple[int, ...]:
    """So many tokens, spread over a vocabulary, none special where there are two others: neighbours
    differ.
    """
    spread = range(0, vocabulary, max(1, vocabulary // 64))
    allowed = [token for token in spread if token not in special]
    if len(allowed) < 2:
        allowed = [*spread]
    step = max(1, len(allowed) // count)
    return tuple(islice(cycle(allowed[::step]), count))


@contextmanager
def prompt_of_head(network: PreTrainedModel, tokens: tuple[int, ...]) -> Iterator[None]:
    """A context in which a cut head scores these tokens too."""
    head = network.get_output_embeddings()
    if not isinstance(head, CutHead):
        yield
        return
    before = head.prompt
    head.set_prompt(tokens)
    try:
        yield
    finally:
        head.set_prompt(before or ())


def _told(error: Exception) -> str:
    """An error in one line."""
    return shorten(f"{type(error).__name__}: {error}", 160)
