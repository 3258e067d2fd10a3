"""The checks of what a person gives to the loop: kinds, prompt, vocabularies, and proposals."""

from collections.abc import Collection, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import vocabularies_in
from specdec_lib.core.kinds import is_a, shown
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.tree import TokenTree

MOST_NEW_TOKENS = 2**20  # more than any context holds
MODEL_MEMBERS = ("name", "vocabulary", "max_positions", "runtime", "usage", "score", "forget")


def check_arguments(
    target: Any, draft: Any, prompt: Any, chance: Any, *, rule: Any, max_new_tokens: int
) -> Context:
    """The prompt as a context, after all checks; raises ValueError as `rounds` says."""
    _check_kinds(target, draft, chance, rule)
    context = prompt if isinstance(prompt, Context) else Context.of(_tokens(prompt))
    if not is_a(max_new_tokens, int) or not 1 <= max_new_tokens <= MOST_NEW_TOKENS:
        raise ValueError(
            f"max_new_tokens is a whole number from 1 to {MOST_NEW_TOKENS:,}, got"
            f" {shown(max_new_tokens)}"
        )
    if max(context.tokens) >= target.vocabulary:
        raise ValueError(
            f"the prompt holds token {max(context.tokens)}, the target's vocabulary ends at"
            f" {target.vocabulary - 1}"
        )
    if len(context) > target.max_positions:
        raise ValueError(
            f"the prompt has {len(context)} tokens, the target reads at most {target.max_positions}"
        )
    for name, size in vocabularies_in(draft):
        if size != target.vocabulary:
            raise ValueError(
                f"a draft must share the target's vocabulary: {name} has {size} tokens,"
                f" {target.name} {target.vocabulary}"
            )
    return context


def check_stops(stop_tokens: Any, target: LanguageModel) -> frozenset[int]:
    """The stop tokens.  Raises ValueError unless all are tokens of the target."""
    if not isinstance(stop_tokens, Collection) or isinstance(stop_tokens, str | bytes):
        raise ValueError(f"stop tokens are a collection of tokens, got {_kind(stop_tokens)}")
    stops = frozenset(_whole(stop_tokens))
    for stop in stops:
        if not 0 <= stop < target.vocabulary:
            raise ValueError(
                f"a stop token is 0 to {target.vocabulary - 1} in the target's vocabulary, got"
                f" {stop}"
            )
    return stops


def checked_tree(proposed: Any) -> TokenTree:
    """The tree that a draft proposed.  Raises ValueError if it is not one."""
    if not isinstance(proposed, TokenTree):
        raise ValueError(
            "a draft proposes a TokenTree, such as TokenTree.rooted(context).grown(…), got"
            f" {_kind(proposed)}"
        )
    return proposed


def _check_kinds(target: Any, draft: Any, chance: Any, rule: Any) -> None:
    if not isinstance(target, LanguageModel):
        missing = ", ".join(sorted(set(MODEL_MEMBERS) - set(dir(target))))
        raise ValueError(
            "the target is a language model such as models.loading.load_model gives, got"
            f" {_kind(target)} without {missing}"
        )
    if not isinstance(draft, Draft):
        remedy = (
            "; a model guesses inside a draft: ChainDraft(model, 4) or TreeDraft(model, budget=8)"
            if isinstance(draft, LanguageModel)
            else ""
        )
        raise ValueError(f"a draft has propose(context, chance), got {_kind(draft)}{remedy}")
    if not isinstance(chance, Chance):
        raise ValueError(f"chance is Chance(seed, Sampler(temperature)), got {_kind(chance)}")
    if not isinstance(rule, Rule):
        raise ValueError(
            "a rule is look_up or reject of specdec_lib.core.verify, or a function like them, got"
            f" {_kind(rule)}"
        )


def _tokens(prompt: Any) -> tuple[int, ...]:
    if isinstance(prompt, str):
        raise ValueError(
            "a prompt is tokens, got text; ladder.encode(text) or tokenizer.encode(text) makes"
            f" tokens of {prompt[:40]!r}"
        )
    if isinstance(prompt, np.ndarray | Tensor):
        if prompt.ndim != 1:
            raise ValueError(
                f"a prompt is one row of tokens, got an array of shape {tuple(prompt.shape)}; of a"
                " batch take one row: prompt[0].tolist()"
            )
        prompt = prompt.tolist()
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise ValueError(f"a prompt is a sequence of tokens in order, got {_kind(prompt)}")
    return _whole(prompt)


def _whole(tokens: Collection) -> tuple[int, ...]:
    for token in tokens:
        if not isinstance(token, Integral) or isinstance(token, bool):
            raise ValueError(f"tokens are whole numbers, got {shown(token)}")
    return tuple(map(int, tokens))


def _kind(value: object) -> str:
    simple = value is None or isinstance(value, str | int | float)
    return repr(value) if simple else f"a {type(value).__name__}"
