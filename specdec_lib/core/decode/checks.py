"""The checks of a generation's arguments beyond their kinds: prompt, vocabularies, stop tokens."""

from collections.abc import Collection, Sequence

from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import vocabularies_in
from specdec_lib.core.protocols import Draft, LanguageModel

MOST_NEW_TOKENS = 2**20  # more than any context holds


def check_arguments(
    target: LanguageModel, draft: Draft, prompt: Context | Sequence[int], max_new_tokens: int
) -> Context:
    """The prompt as a context, after all checks; raises ValueError as `rounds` says."""
    context = prompt if isinstance(prompt, Context) else Context.of(tuple(map(int, prompt)))
    if not 1 <= max_new_tokens <= MOST_NEW_TOKENS:
        allowed = f"max_new_tokens is a whole number from 1 to {MOST_NEW_TOKENS:,}"
        raise ValueError(f"{allowed}, got {max_new_tokens}")
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


def check_stops(stop_tokens: Collection[int], target: LanguageModel) -> frozenset[int]:
    """The stop tokens.  Raises ValueError unless all are tokens of the target."""
    last = target.vocabulary - 1
    for stop in stop_tokens:
        if not 0 <= stop <= last:
            raise ValueError(f"a stop token is 0 to {last} in the target's vocabulary, got {stop}")
    return frozenset(map(int, stop_tokens))
