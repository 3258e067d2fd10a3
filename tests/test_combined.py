"""Drafts made of several: the first that guesses enough, and all of them merged."""

import pytest
from fakes import HERE, T1, Says, table_model

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft


def test_the_first_draft_that_guesses_enough_is_taken_and_no_later_one_is_asked():
    parts = none, two, three = Says((), "none"), Says((1, 1), "two"), Says((1, 1, 1), "three")
    assert FirstDraft(parts).propose(HERE, Chance(0)).sources[1:] == ("two", "two")
    assert (none.nested, two.nested, three.nested) == ([(("part", (0,)),)], [(("part", (1,)),)], [])
    assert FirstDraft(parts, least=3).propose(HERE, Chance(0)).guesses == 3
    assert FirstDraft(parts[:1]).propose(HERE, Chance(0)).guesses == 0
    with pytest.raises(ValueError, match="at least one part, got none"):
        FirstDraft(())


def test_a_merged_draft_holds_what_its_parts_guess_once():
    context = Context.of([1, 2, 0, 3, 1, 2, 0])
    tree, other = TreeDraft(table_model(5, 1), widths=(5, 2)), table_model(5, 2, name="other")
    parts = (MaxGram(None, 2), tree, ChainDraft(other, 3))

    def guessed(draft) -> list[tuple]:
        tree = draft.propose(context, Chance(0, T1))
        nodes = range(1, len(tree))
        return [(tree.path_tokens(node), tree.scores[node], tree.sources[node]) for node in nodes]

    merged, whole = guessed(MergedDraft(parts)), [one for part in parts for one in guessed(part)]
    paths = [path for path, _, _ in merged]
    assert len(set(paths)) == len(paths) < len(whole)
    assert set(paths) == {path for path, _, _ in whole}
    for path, score, source in merged:
        found = [one for one in whole if one[0] == path]
        assert score == max(score for _, score, _ in found) and source == found[0][2]
    assert {"prompt", "table", "other"} <= {source for _, _, source in merged}


def test_drawn_guesses_are_neither_passed_over_nor_merged():
    """It would be biased: whether they are few, or equal, may depend on what was drawn."""
    drawn = TreeDraft(table_model(5, 1), widths=(2,), siblings="distinct")
    for draft, complaint in (
        (FirstDraft((drawn, NoDraft()), least=3), "drawn cannot be passed over"),
        (MergedDraft((MaxGram(None, 2), drawn)), "a tree with rows cannot be merged"),
    ):
        with pytest.raises(ValueError, match=complaint):
            draft.propose(HERE, Chance(0, T1))
    with pytest.raises(ValueError, match="at least one part, got none"):
        MergedDraft(())
