"""What may be asked of the loop, and whom it concerns: every model and draft that is reachable from
what was given.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import Rule


def parts_of(*parts: object) -> Iterator[object]:
    """Every draft and model reachable from these through their attributes; lists, tuples and
    dictionaries by name included; one may come twice.
    """
    for part in parts:
        if isinstance(part, int | float | str):
            continue  # most of what a draft remembers
        if isinstance(part, Mapping):
            yield from parts_of(*part.values()) if isinstance(next(iter(part), None), str) else ()
        elif isinstance(part, list | tuple):
            yield from parts_of(*part)
        elif hasattr(part, "score") and isinstance(
            part, LanguageModel
        ):  # protocols answer slowly, so they are asked last
            yield part
        elif hasattr(part, "propose") and isinstance(part, Draft):
            yield part
            yield from parts_of(*_attributes(part))


def _attributes(draft: Draft) -> list[object]:
    """The values of a draft's attributes, whether they lie in its dictionary or in slots."""
    names = {
        name for kind in type(draft).__mro__ for name in _listed(vars(kind).get("__slots__", ()))
    } | set(getattr(draft, "__dict__", ()))
    return [getattr(draft, name) for name in sorted(names) if hasattr(draft, name)]


def _listed(slots: str | Sequence[str]) -> Sequence[str]:
    return (slots,) if isinstance(slots, str) else slots


def models_in(*parts: object) -> dict[str, LanguageModel]:
    """Every model among `parts_of` these, by name.

    Raises ValueError if two different models share a name, because their records would mix.
    """
    found: dict[str, LanguageModel] = {}
    for model in parts_of(*parts):
        if isinstance(model, LanguageModel) and found.setdefault(model.name, model) is not model:
            raise ValueError(f"two models are called {model.name!r}; give them different names")
    return found


def checked(
    target: Any, draft: Any, prompt: Any, chance: Any, *, rule: Any, max_new_tokens: int
) -> Context:
    """The prompt as a context.

    Raises ValueError if something is of another kind than the loop works with, the prompt is empty
    or does not fit, or a draft's vocabulary is not the target's.
    """
    _check_kinds(target, draft, chance, rule)
    context = prompt if isinstance(prompt, Context) else Context.of(_tokens(prompt))
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    if max(context.tokens) >= target.vocabulary:
        raise ValueError(
            f"the prompt holds token {max(context.tokens)}, the target's vocabulary ends at"
            f" {target.vocabulary - 1}"
        )
    if len(context) > target.max_positions:
        raise ValueError(
            f"the prompt has {len(context)} tokens, the target reads at most {target.max_positions}"
        )
    models_in(target, draft)
    for part in parts_of(draft):
        size = getattr(part, "vocabulary", None)
        if size not in (None, target.vocabulary):
            name = getattr(part, "name", type(part).__name__)
            raise ValueError(
                f"a draft must share the target's vocabulary: {name} has {size} tokens,"
                f" {target.name} {target.vocabulary}"
            )
    return context


def checked_tree(proposed: Any) -> TokenTree:
    """What a draft proposed.  Raises ValueError if that is no tree."""
    if not isinstance(proposed, TokenTree):
        raise ValueError(
            "a draft proposes a TokenTree, such as TokenTree.rooted(context).grown(…), got"
            f" {_kind(proposed)}"
        )
    return proposed


def _check_kinds(target: Any, draft: Any, chance: Any, rule: Any) -> None:
    """Raises ValueError naming what is of another kind than the loop works with."""
    if not isinstance(target, LanguageModel):
        raise ValueError(
            f"the target is a language model such as workload.load_model gives, got {_kind(target)}"
        )
    if not isinstance(draft, Draft):
        remedy = (
            "; a model guesses inside a draft: ChainDraft(model, 4) or TreeDraft(model, budget=8)"
            if isinstance(draft, LanguageModel)
            else ""
        )
        raise ValueError(f"a draft has propose(context, chance), got {_kind(draft)}{remedy}")
    if not callable(getattr(chance, "choose", None)):
        raise ValueError(f"chance is Chance(seed, Sampler(temperature)), got {_kind(chance)}")
    if not isinstance(rule, Rule):
        raise ValueError(
            "a rule is look_up or reject of specdec_lib.core.verify, or a function like them, got"
            f" {_kind(rule)}"
        )


def _tokens(prompt: Any) -> tuple[int, ...]:
    """The tokens of a prompt.

    Raises ValueError unless they are whole numbers, one after the other.
    """
    if isinstance(prompt, str):
        raise ValueError(
            "a prompt is tokens, got text; ladder.encode(text) or tokenizer.encode(text) makes"
            f" tokens of {prompt[:40]!r}"
        )
    if hasattr(prompt, "shape") and len(prompt.shape) != 1:
        raise ValueError(
            f"a prompt is one row of tokens, got an array of shape {tuple(prompt.shape)}; of a"
            " batch take one row: prompt[0].tolist()"
        )
    tokens = tuple(prompt.tolist() if hasattr(prompt, "tolist") else prompt)
    if (
        odd := next(
            (
                token
                for token in tokens
                if not isinstance(token, Integral) or isinstance(token, bool)
            ),
            None,
        )
    ) is not None:
        raise ValueError(f"tokens are whole numbers, got {odd!r}")
    return tuple(map(int, tokens))


def _kind(value: object) -> str:
    return (
        repr(value)
        if isinstance(value, str | int | float) or value is None
        else f"a {type(value).__name__}"
    )
