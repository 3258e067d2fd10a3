"""A context knows what was given and refuses what is no context."""

import pytest

from specdec_lib.core.context import Context


def test_a_longer_context_is_what_it_would_be_if_made_at_once():
    longer = Context((1, 2), 1, source=(3,)).extended([4]).extended((5, 6))
    whole = Context((1, 2, 4, 5, 6), 1, source=(3,))
    assert longer == whole and hash(longer) == hash(whole)
    assert "begun" not in repr(longer) and longer.begun == (1, 2, 4)
    assert (longer.prompt, longer.generated, len(longer)) == ((1,), (2, 4, 5, 6), 5)


@pytest.mark.parametrize(
    "tokens,prompt_tokens,message",
    [((), 0, "prompt is empty"), ((1,), 0, "1…1"), ((1,), 2, "1…1"), ((-1,), 1, "from 0 on")],
)
def test_what_is_no_context_is_refused(tokens, prompt_tokens, message):
    with pytest.raises(ValueError, match=message):
        Context(tokens, prompt_tokens)
