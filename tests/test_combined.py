"""Drafts made of several: the first that guesses enough, and all of them merged."""

import pytest
from fakes import PROMPT, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

T1 = Sampler(1.0)


def test_the_first_draft_that_guesses_enough_is_taken_and_no_later_one_is_asked():
    asked = []

    class Guesser:
        def __init__(self, name: str, guesses: int) -> None:
            self.name, self.guesses = name, guesses

        def propose(self, context: Context, chance: Chance) -> TokenTree:
            asked.append((self.name, chance.nesting))
            return TokenTree.rooted(context).grown(
                [1] * self.guesses,
                range(self.guesses),
                source=self.name,
                scores=[1.0] * self.guesses,
            )

    parts = Guesser("none", 0), Guesser("two", 2), Guesser("three", 3)
    context = Context.of([1, 2])
    assert FirstDraft(parts).propose(context, Chance(0)).sources[1:] == ("two", "two")
    assert asked == [("none", (("part", (0,)),)), ("two", (("part", (1,)),))]
    assert FirstDraft(parts, least=3).propose(context, Chance(0)).guesses == 3
    assert FirstDraft(parts[:1]).propose(context, Chance(0)).guesses == 0
    with pytest.raises(ValueError, match="got 0 and least=1"):
        FirstDraft(())


def test_guesses_that_were_drawn_are_never_passed_over():
    """It would be biased: whether they are few may depend on what was drawn."""
    drawn = ChainDraft(table_model(3, 1), 1, siblings="iid")
    with pytest.raises(ValueError, match="drawn cannot be passed over"):
        FirstDraft((drawn, NoDraft()), least=2).propose(Context.of([1, 2]), Chance(0, Sampler(1.0)))


def test_a_merged_draft_holds_what_its_parts_guess_once():
    context = Context.of([1, 2, 0, 3, 1, 2, 0])
    parts = (
        MaxGram(None, 2),
        TreeDraft(table_model(5, 1), widths=(5, 2)),
        ChainDraft(table_model(5, 2, name="other"), 3),
    )
    trees = [part.propose(context, Chance(0, T1)) for part in parts]
    merged = MergedDraft(parts).propose(context, Chance(0, T1))
    guessed = [
        {
            tree.path_tokens(node): (tree.scores[node], tree.sources[node])
            for node in range(1, len(tree))
        }
        for tree in trees
    ]
    paths = [merged.path_tokens(node) for node in range(1, len(merged))]
    assert (
        len(set(paths)) == len(paths)
        and set(paths) == set().union(*guessed)
        and len(paths) < sum(map(len, guessed))
    )
    for node, path in enumerate(paths, 1):
        found = [part[path] for part in guessed if path in part]
        assert (merged.scores[node], merged.sources[node]) == (
            max(score for score, _ in found),
            found[0][1],
        )
    assert {"prompt", "table", "other"} <= set(merged.sources)


@pytest.mark.parametrize("siblings", ["iid", "distinct"])
def test_a_merged_draft_refuses_drawn_parts_and_needs_one(siblings):
    drawn = TreeDraft(table_model(5, 1), widths=(2,), siblings=siblings)
    for parts in ((drawn,), (MaxGram(None, 2), drawn)):
        with pytest.raises(ValueError, match="a tree with rows cannot be merged"):
            MergedDraft(parts).propose(Context.of(PROMPT), Chance(0, T1))
    with pytest.raises(ValueError, match="at least one part, got none"):
        MergedDraft(())
