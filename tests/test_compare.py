"""The comparison of a pair of models: what is timed and kept, and the command."""

import math
import re

import pandas as pd
import pytest
from own_models import gpt2, llama

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.compare import command
from specdec_lib.measure.compare.command import USUAL, compare_methods, compared_contenders
from specdec_lib.measure.compare.verdict import PLAIN, method_summary
from specdec_lib.measure.race import harness
from specdec_lib.measure.race.contenders import HF
from specdec_lib.workload import Prompt, load_ladder, load_prompts
from specdec_lib.workload.ladder import neutral

pytestmark = pytest.mark.usefixtures("unchecked")
TEXTS = ("a", "def f(x):\n    return"), ("b", "class A:\n    def g")
PROMPTS = [Prompt(*named, "own", "held-out", "here") for named in TEXTS]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    return load_ladder(llama(root / "target", width=64), gpt2(root / "draft", seed=2), device="cpu")


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0, top_k=20)])
def test_an_own_pair_is_compared_and_every_text_is_the_targets_own(own, sampler):
    """But for sampled text of Hugging Face."""
    rows = compare_methods(own, PROMPTS, sampler, max_new_tokens=6)
    assert set(rows.method) == {*USUAL} - {"tree of 8 fed by n-grams"}
    assert rows.groupby("method").size().eq(2).all() and rows.margin.isna().all()
    assert (rows.tokens.groupby(rows.prompt).nunique() == 1).all()
    told = method_summary(rows).set_index("method")
    assert told.tokens_per_round[PLAIN] == told.speed_up[PLAIN] == 1
    assert math.isnan(told.acceptance_rate[PLAIN])
    drawn = {name for name in told.index if sampler.temperature and USUAL[name][0] in HF}
    assert told.same.to_dict() == {name: "–" if name in drawn else "yes" for name in told.index}


def test_the_embedded_ladder_is_tried_with_all_that_there_is(ladder):
    assert [one.method for one in compared_contenders(ladder, Sampler(0), {})] == list(USUAL)


def test_a_draft_of_ones_own_takes_part_under_a_name_of_its_own(own):
    mine = {"mine": ChainDraft(own.target, 3)}
    told = method_summary(compare_methods(own, PROMPTS[:1], own=mine, max_new_tokens=12))
    told = told.set_index("method")
    assert told.acceptance_rate["mine"] == 1 and told.tokens_per_round["mine"] > 2
    with pytest.raises(ValueError, match="a draft of your own needs a name of its own, got plain"):
        compare_methods(own, PROMPTS, own={PLAIN: NoDraft()})


def test_a_draft_that_learns_gets_warm_on_another_text_than_those_that_are_timed(own):
    read = []

    class Learner:
        def propose(self, context, chance):
            read.append(context.tokens)
            return TokenTree.rooted(context)

    compare_methods(own, PROMPTS[:1], own={"learner": Learner()}, max_new_tokens=4)
    warm, timed = (
        own.encode(one) for one in (load_prompts("chat", "development", 1)[0], PROMPTS[0])
    )
    first = [tokens[: len(warm)] == warm for tokens in read]
    assert first.index(False) > 0 and not any(first[first.index(False) :])
    assert all(tokens[: len(timed)] == timed for tokens in read[first.index(False) :])


def test_generation_configurations_of_ones_own_models_are_put_aside_and_back(own, monkeypatch):
    target, draft, seen = own.target.model, own.draft.model, []
    judge = harness.near_tie

    def spied(*given, **named):
        seen.append(draft.generation_config.repetition_penalty)
        return judge(*given, **named)

    monkeypatch.setattr(harness, "near_tie", spied)
    for model in (target, draft):
        monkeypatch.setattr(model.generation_config, "repetition_penalty", 1.5)
    with pytest.raises(KeyError), neutral(own):
        assert target.generation_config.repetition_penalty in (None, 1.0)
        assert target.generation_config.eos_token_id == 0
        raise KeyError
    assert target.generation_config.repetition_penalty == 1.5
    rows = compare_methods(own, PROMPTS[:1], max_new_tokens=6)
    assert rows.same.all() and seen and 1.5 not in seen
    assert draft.generation_config.repetition_penalty == 1.5


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        ({"prompts": []}, "needs prompts"),
        ({"max_new_tokens": 0}, "max_new_tokens .* got 0"),
        ({"max_new_tokens": 255}, "prompt a has .* reads at most 256"),
    ],
)
def test_what_cannot_be_compared_is_refused(own, wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        compare_methods(**{"ladder": own, "prompts": PROMPTS} | wrong)


def test_the_command_compares_two_folders_on_a_file_of_prompts(own, tmp_path, capsys):
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    mine, csv = tmp_path / "mine.jsonl", tmp_path / "new" / "table.csv"
    mine.write_text('{"text": "def f(x):"}\n{"text": "import "}\n{"text": "x = 1\\n"}\n')
    given = ["--target", sources[0], "--draft", sources[1], "--prompts", str(mine)]
    given += ["--csv", str(csv), "--limit", "2", "--max-new-tokens", "5", "--device", "cpu"]
    command.main(given)
    said = capsys.readouterr().out
    assert "prompts: 2 of" in said and said.count("yes") == len(pd.read_csv(csv))
    assert pd.read_csv(csv).speed_up_low.isna().all()  # no interval from two prompts
    assert re.search("Speculate|not speculate|No clear gain", said.strip().splitlines()[-1])
