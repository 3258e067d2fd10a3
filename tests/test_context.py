"""A context knows what was given and refuses what is no context."""

import pytest

from specdec_lib.core.context import Context


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


def test_a_longer_context_is_what_it_would_be_if_made_at_once():
    longer = Context((1, 2), 1, source=(3,)).extended([4]).extended((5, 6))
    whole = Context((1, 2, 4, 5, 6), 1, source=(3,))
    assert longer == whole and hash(longer) == hash(whole)
    assert "begun" not in repr(longer) and longer.begun == (1, 2, 4)
    with pytest.raises(ValueError, match="from 0 on, got -3"):
        longer.extended([2, -3])
