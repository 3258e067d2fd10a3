"""A context knows what was given and refuses what is no context."""

from fakes import refusals

from specdec_lib.core.context import Context


def test_a_longer_context_is_what_it_would_be_if_made_at_once():
    longer = Context((1, 2), 1, source=(3,)).extended([4]).extended((5, 6))
    whole = Context((1, 2, 4, 5, 6), 1, source=(3,))
    assert longer == whole and hash(longer) == hash(whole)
    assert "begun" not in repr(longer) and longer.begun == (1, 2, 4)
    assert (longer.prompt, longer.generated, len(longer)) == ((1,), (2, 4, 5, 6), 5)


test_what_is_no_context_is_refused = refusals(
    (lambda: Context((), 0), "prompt is empty"),
    (lambda: Context((1,), 0), "1…1, got 0"),
    (lambda: Context((1,), 2), "1…1, got 2"),
    (lambda: Context((-1,), 1), "from 0 on"),
)
