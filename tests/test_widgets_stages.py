"""The explorer of stages counts what real rounds of its drafts count."""

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.sweep import stacks
from specdec_lib.show.widgets import stage_explorer
from specdec_lib.show.widgets.trying import NEW_TOKENS
from specdec_lib.workload import seeds

START = {"budget": 4, "depth": 3, "scout_budget": 4}


@pytest.fixture
def stages(drawn, ladder, prompts):
    return stage_explorer(ladder, prompts[:2], start=START)


def metric(drawn, name):
    """The values of one metric, by stack."""
    table = drawn.given("stages")
    return table[table.metric == name].value.tolist()


def test_the_stages_counts_are_those_of_real_rounds(stages, drawn, ladder, prompts):
    one = TreeDraft(ladder.draft, budget=4, depth=3, match=ladder.match("draft", Sampler(0.0)))
    two = StagedTree(one, stacks.scout(ladder, Sampler(0.0), budget=4), guided=2)
    for place, draft in enumerate((one, two), 1):
        limits = {"stop_tokens": ladder.stop_tokens, "max_new_tokens": NEW_TOKENS}
        chance = Chance(seeds(prompts[:1], 0)[0], Sampler(0.0))
        played = decode(ladder.target, draft, ladder.encode(prompts[0]), chance, **limits)
        passes = sum(used.usage["draft"].passes for used in played.rounds) / len(played.rounds)
        assert metric(drawn, "tokens per round")[place] == pytest.approx(played.tokens_per_round)
        assert metric(drawn, "draft passes per round")[place] == pytest.approx(passes)


def test_a_second_stage_changes_passes_and_no_tokens(stages, drawn):
    for scout in ("n-gram", "Max-Gram", "draft, for the middle model"):
        for shape in ("tree", "chain"):
            stages.turn(scout=scout, shape=shape)
            plain, one, two = metric(drawn, "tokens per round")
            assert plain == 1 <= one == two
    stages.turn(scout="none", text="def mean(values):\n")
    assert len(metric(drawn, "tokens per round")) == 2 and "alert" not in stages.words.value
