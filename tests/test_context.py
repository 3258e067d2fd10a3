"""A context knows what was given and refuses what is no context."""

import pytest

from specdec_lib.context import Context


def test_generated_tokens_follow_the_prompt():
    context = Context.of([5, 6]).extended([7])
    assert (context.prompt, context.generated, len(context)) == ((5, 6), (7,), 3)


def test_the_source_stays():
    assert Context((0,), 1, source=(4, 5)).extended([1]).source == (4, 5)


@pytest.mark.parametrize(
    "tokens,prompt_tokens,message",
    [((), 0, "prompt is empty"), ((1,), 0, "1…1"), ((1,), 2, "1…1"), ((-1,), 1, "from 0 on")],
)
def test_what_is_no_context_is_refused(tokens, prompt_tokens, message):
    with pytest.raises(ValueError, match=message):
        Context(tokens, prompt_tokens)
