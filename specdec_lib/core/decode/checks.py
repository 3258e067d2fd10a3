"""The checks of what a person gives to the loop: kinds, prompt, vocabularies, and proposals."""

from collections.abc import Collection, Sequence
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
MODEL_MEMBERS = {"name", "vocabulary", "max_positions", "runtime", "usage", "score", "forget"}


def check_arguments(
    target: Any, draft: Any, prompt: Any, chance: Any, *, rule: Any, max_new_tokens: int
) -> Context:
    """The prompt as a context, after all checks; raises ValueError as `rounds` says."""
    _check_kinds(target, draft, chance, rule)
    context = prompt if isinstance(prompt, Context) else Context.of(_tokens(prompt))
    if not is_a(max_new_tokens, int) or not 1 <= max_new_tokens <= MOST_NEW_TOKENS:
        allowed = f"max_new_tokens is a whole number from 1 to {MOST_NEW_TOKENS:,}"
        raise ValueError(f"{allowed}, got {shown(max_new_tokens)}")
    if (largest := max(context.tokens)) >= target.vocabulary:
        ends = f"the target's vocabulary ends at {target.vocabulary - 1}"
        raise ValueError(f"the prompt holds token {largest}, {ends}")
    if len(context) > target.max_positions:
        most = f"the target reads at most {target.max_positions}"
        raise ValueError(f"the prompt has {len(context)} tokens, {most}")
    for name, size in vocabularies_in(draft):
        if size != target.vocabulary:
            both = f"{name} has {size} tokens, {target.name} {target.vocabulary}"
            raise ValueError(f"a draft must share the target's vocabulary: {both}")
    return context


def check_stops(stop_tokens: Any, target: LanguageModel) -> frozenset[int]:
    """The stop tokens.  Raises ValueError unless all are tokens of the target."""
    if not isinstance(stop_tokens, Collection) or isinstance(stop_tokens, str | bytes):
        raise ValueError(f"stop tokens are a collection of tokens, got {_kind(stop_tokens)}")
    stops, last = frozenset(_whole(stop_tokens)), target.vocabulary - 1
    for stop in stops:
        if not 0 <= stop <= last:
            raise ValueError(f"a stop token is 0 to {last} in the target's vocabulary, got {stop}")
    return stops


def checked_tree(proposed: Any) -> TokenTree:
    """The tree that a draft proposed.  Raises ValueError if it is not one."""
    if isinstance(proposed, TokenTree):
        return proposed
    wanted = "a draft proposes a TokenTree, such as TokenTree.rooted(context).grown(…)"
    raise ValueError(f"{wanted}, got {_kind(proposed)}")


def _check_kinds(target: Any, draft: Any, chance: Any, rule: Any) -> None:
    lacks = f" without {', '.join(sorted(MODEL_MEMBERS - set(dir(target))))}"
    inside = "; a model guesses inside a draft: ChainDraft(model, 4) or TreeDraft(model, budget=8)"
    remedy = inside if isinstance(draft, LanguageModel) else ""
    rules = "look_up or reject of specdec_lib.core.verify, or a function like them"
    for given, kind, wanted, more in (
        (target, LanguageModel, "the target is a language model such as load_model gives", lacks),
        (draft, Draft, "a draft has propose(context, chance)", remedy),
        (chance, Chance, "chance is Chance(seed, Sampler(temperature))", ""),
        (rule, Rule, f"a rule is {rules}", ""),
    ):
        if not isinstance(given, kind):
            raise ValueError(f"{wanted}, got {_kind(given)}{more}")


def _tokens(prompt: Any) -> tuple[int, ...]:
    if isinstance(prompt, str):
        remedy = "ladder.encode(text) or tokenizer.encode(text) makes tokens of"
        raise ValueError(f"a prompt is tokens, got text; {remedy} {prompt[:40]!r}")
    if isinstance(prompt, np.ndarray | Tensor):
        if prompt.ndim != 1:
            got = f"an array of shape {tuple(prompt.shape)}"
            remedy = "of a batch take one row: prompt[0].tolist()"
            raise ValueError(f"a prompt is one row of tokens, got {got}; {remedy}")
        prompt = prompt.tolist()
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise ValueError(f"a prompt is a sequence of tokens in order, got {_kind(prompt)}")
    return _whole(prompt)


def _whole(tokens: Collection) -> tuple[int, ...]:
    for token in tokens:
        if not is_a(token, int):
            raise ValueError(f"tokens are whole numbers, got {shown(token)}")
    return tuple(map(int, tokens))


def _kind(value: object) -> str:
    simple = value is None or isinstance(value, str | int | float)
    return repr(value) if simple else f"a {type(value).__name__}"
