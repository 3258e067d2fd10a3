"""Explorers over models of one's own: they offer what the ladder has, and foretell nothing from the
times of other models.
"""

import pytest
from own_models import gpt2

from specdec_lib.show.widgets import round_steps, stage_explorer, tree_explorer
from specdec_lib.show.widgets.trying import GUESSERS, Machine
from specdec_lib.theory import Overhead, PassTable
from specdec_lib.workload import Prompt, load_ladder

PROMPTS = [Prompt("a", "def f(x):\n    return", "own", "held-out", "here")]
SMALL = {"max_new_tokens": 6}
TABLE = PassTable((1, 8), (0,), ((1.0, 1.5),))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    return load_ladder(gpt2(root / "target", seed=1), gpt2(root / "draft", seed=2), device="cpu")


def test_an_own_pair_is_explored_with_the_drafts_and_scouts_that_it_has(own):
    trees, stages, steps = (
        tree_explorer(own, PROMPTS, **SMALL),
        stage_explorer(own, PROMPTS, **SMALL),
        round_steps(own, PROMPTS),
    )
    assert list(trees.knobs["draft"].options) == ["draft", "Max-Gram", "draft and Max-Gram"]
    assert (
        list(stages.knobs["scout"].options) == ["none", "Max-Gram"]
        and stages.values()["scout"] == "Max-Gram"
    )
    assert [button.description for button in stages.children[1].children] == [
        "reset",
        "chain, one stage",
        "tree, one stage",
    ]
    steps.turn(rule="reject", temperature=1.0)
    assert not any("alert" in box.words.value for box in (trees, stages, steps))
    with pytest.raises(ValueError, match="'scout' must start at one of"):
        stage_explorer(own, PROMPTS, start={"scout": "n-gram"}, **SMALL)


def test_the_embedded_ladder_offers_everything(ladder, prompts):
    assert list(tree_explorer(ladder, prompts[:1], **SMALL).knobs["draft"].options) == list(
        GUESSERS
    )
    assert len(stage_explorer(ladder, prompts[:1], **SMALL).knobs["scout"].options) == 4


def test_no_speed_up_is_predicted_from_pass_times_of_other_models_of_the_same_names(
    own, ladder, prompts
):
    said = tree_explorer(own, PROMPTS, **SMALL).words.value
    assert "No speed-up is predicted: no pass times of these models are stored" in said
    assert "Predicted speed" in tree_explorer(ladder, prompts[:1], **SMALL).words.value, (
        "the control"
    )
    tables = {"target": TABLE, "draft": TABLE.faster(10)}
    measured = Machine(
        "mine", tables, {0.0: {"tree": Overhead(0.1), "autoregressive": Overhead(0.1)}}
    )
    assert (
        "Predicted speed" in tree_explorer(own, PROMPTS, machine=measured, **SMALL).words.value
    ), "one's own measurement counts"


@pytest.mark.parametrize("draft", GUESSERS)
def test_the_hosts_seconds_are_added_where_they_were_fitted_for_the_kind_of_draft(
    ladder, prompts, draft
):
    said = tree_explorer(ladder, prompts[:1], start={"draft": draft}, **SMALL).words.value
    fitted = draft in ("draft", "middle")
    assert ("if the host's own code took no time in either" in said) == fitted and (
        "passes alone" in said
    ) != fitted
