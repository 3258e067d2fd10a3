"""The comparison of a pair of models: what is timed, what it comes to in words, and the command."""

import math
import re

import pandas as pd
import pytest
from own_models import gpt2, llama
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure import comparing, racing
from specdec_lib.measure.comparing import compare_methods, compared_contenders
from specdec_lib.measure.settings.compare import ASSISTED, USUAL
from specdec_lib.measure.settings.names import HF, HUGGING_PLAIN, PLAIN
from specdec_lib.measure.settings.usual import DEFAULT
from specdec_lib.measure.verdict import method_summary, verdict
from specdec_lib.workload import Prompt, load_ladder, load_prompts
from specdec_lib.workload.ladder import neutral
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked", "few_turns")
TEXTS = ("a", "def f(x):\n    return"), ("b", "class A:\n    def g")
OF_A_PAIR = {*USUAL, DEFAULT} - {name for name in USUAL if "n-grams" in name}
OF_A_PAIR -= {name for name in USUAL if "reading its target" in name}
PROMPTS = [Prompt(*named, "own", "held-out", "here") for named in TEXTS]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    return load_ladder(llama(root / "target", width=64), gpt2(root / "draft", seed=2), device="cpu")


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0, top_k=20)])
def test_an_own_pair_is_compared_and_every_text_is_the_targets_own(own, sampler):
    """Sampled text of Hugging Face is the exception: it has a noise of its own."""
    rows = compare_methods(own, PROMPTS, sampler, max_new_tokens=6)
    assert set(rows.method) == OF_A_PAIR
    assert rows.groupby("method").size().eq(2).all() and rows.margin.isna().all()
    assert (rows.tokens.groupby(rows.prompt).nunique() == 1).all()
    told = method_summary(rows).set_index("method")
    assert told.tokens_per_round[PLAIN] == told.speed_up[PLAIN] == 1
    assert math.isnan(told.acceptance_rate[PLAIN])
    drawn = {name for name in USUAL if sampler.temperature and USUAL[name][0] in HF}
    assert told.same.to_dict() == {name: "–" if name in drawn else "yes" for name in told.index}


def test_a_ladder_with_all_parts_is_tried_with_all_that_there_is():
    ladder = tiny_ladder(reads=True)
    tried = [one.method for one in compared_contenders(ladder, Sampler(0), {})]
    assert tried == [*USUAL, DEFAULT]


def test_drafts_of_ones_own_take_part_and_get_warm_on_another_text(own):
    read = []

    class Learner:
        def propose(self, context, chance):
            read.append(context.tokens)
            return TokenTree.rooted(context)

    mine = {"mine": ChainDraft(own.target, 3), "learner": Learner()}
    told = method_summary(compare_methods(own, PROMPTS[:1], own=mine, max_new_tokens=12))
    told = told.set_index("method")
    assert told.acceptance_rate["mine"] == 1 and told.tokens_per_round["mine"] > 2
    warm, timed = map(own.encode, (load_prompts("chat", "development", 1)[0], PROMPTS[0]))
    first = [tokens[: len(warm)] == warm for tokens in read].index(False)
    assert first > 0 and all(tokens[: len(timed)] == timed for tokens in read[first:])
    with pytest.raises(ValueError, match="a draft of your own needs a name of its own, got plain"):
        compare_methods(own, PROMPTS, own={PLAIN: NoDraft()})


def test_generation_configurations_of_ones_own_models_are_put_aside_and_back(own, monkeypatch):
    target, draft, seen = own.target.model, own.draft.model, []
    judge = racing.near_tie

    def spied(*given, **named):
        seen.append(draft.generation_config.repetition_penalty)
        return judge(*given, **named)

    monkeypatch.setattr(racing, "near_tie", spied)
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
        ({"max_new_tokens": 255}, r"prompt a has \d tokens, and 255 .* target reads at most 256$"),
    ],
)
def test_what_cannot_be_compared_is_refused(own, wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        compare_methods(**{"ladder": own, "prompts": PROMPTS} | wrong)


@pytest.mark.parametrize("kind", [gpt2, llama])
def test_a_prompt_that_the_draft_cannot_read_is_compared_without_its_guesses(tmp_path, kind):
    """Control: a prompt that it can read. GPT-2, which has no row for a position beyond, would
    raise in assisted generation, on the text that methods get warm on too.
    """
    target = llama(tmp_path / "target", width=64)
    short = load_ladder(target, kind(tmp_path / "draft", seed=2, positions=20), device="cpu")
    long = Prompt("long", "x = 1\n" * 20, "own", "held-out", "here")
    assert len(short.encode(long)) > 20 > len(short.encode(PROMPTS[0])) + 6
    with pytest.warns(UserWarning, match="assisted is left out: the prompt long .* at most 20;"):
        rows = compare_methods(short, [PROMPTS[0], long], max_new_tokens=6)
    assert set(rows.method) == OF_A_PAIR - {ASSISTED}
    assert rows.same.all() and rows.groupby("prompt").tokens.nunique().eq(1).all()
    assert set(compare_methods(short, PROMPTS[:1], max_new_tokens=6).method) - {*rows.method} == {
        ASSISTED
    }


def test_the_command_compares_two_folders_on_a_file_of_prompts(own, tmp_path, capsys):
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    mine, csv = tmp_path / "mine.jsonl", tmp_path / "new" / "table.csv"
    mine.write_text('{"text": "def f(x):"}\n{"text": "import "}\n{"text": "x = 1\\n"}\n')
    given = ["compare", "--target", sources[0], "--draft", sources[1], "--prompts", str(mine)]
    given += ["--csv", str(csv), "--limit", "2", "--max-new-tokens", "5", "--device", "cpu"]
    run(*given)
    said = capsys.readouterr().out
    assert "prompts: 2 of" in said and said.count("yes") == len(pd.read_csv(csv))
    assert pd.read_csv(csv).speed_up_low.isna().all()  # no interval from two prompts
    assert re.search("Speculate|not speculate|No clear gain", said.strip().splitlines()[-1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_auto_takes_the_fast_runtime_or_says_why_not(own, dtype):
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    pair = load_ladder(*sources, device="cpu", dtype=dtype, runtime="auto")
    fast = dtype != "float64"
    assert all(one.runtime.startswith("fast: ") == fast for one in (pair.target, pair.draft))
    notes = comparing.notes_on(pair, "auto")
    assert [note.partition(" is not on the fast runtime: ")[0] for note in notes] == (
        [] if fast else ["the target", "the draft"]
    )
    assert all("got a model in torch.float64 on cpu" in note for note in notes)
    assert comparing.notes_on(pair, "reference") == []
    hugging = {one.exact for one in compared_contenders(pair, Sampler(0), {}) if one.draft is None}
    assert hugging == {dtype != "bfloat16"}  # there it computes in bfloat16, and we in float32


def table(*seconds, names=(PLAIN, HUGGING_PLAIN, "chain of 2"), **more):
    """Rows of methods with one number of seconds each, or one per prompt."""
    row = {"tokens": 10, "timed_tokens": 10, "rounds": 5, "accepted": 3, "tried": 4}
    row |= {"same": True, "margin": math.nan, "rounding": None, "loops": False} | more
    found = [
        {"method": name, "prompt": str(number), "seconds": one} | row
        for name, given in zip(names, seconds, strict=True)
        for number, one in enumerate(given if isinstance(given, tuple) else (given,) * 5)
    ]
    return pd.DataFrame(found).astype({"same": object, "rounding": object})


def test_a_ratio_is_total_time_per_token_against_plain_on_the_same_prompts():
    told = method_summary(table((1.0, 2.0, 3.0, 2.0), (4.0,) * 4, (1.0,) * 4))
    row = told.set_index("method").loc["chain of 2"]
    assert (row.speed_up, row.ms_per_token, row.acceptance_rate) == (2, 100, 0.75)
    assert row.speed_up_low < 2 < row.speed_up_high and row.baseline == PLAIN


def test_the_faster_plain_decoder_is_what_has_to_be_beaten():
    told = method_summary(table(4.0, 1.0, 2.0))
    assert (told.speed_up[2], told.gain[2]) == (2, 0.5) and (told.baseline == HUGGING_PLAIN).all()
    assert verdict(told).startswith("Do not speculate: the best method, chain of 2, is 0.50 times")


@pytest.mark.parametrize(
    "seconds, more, said",
    [
        ((2.0, 3.0, 1.0), {}, "Speculate: chain of 2 is 2.00 times"),
        ((1.0, 3.0, 2.0), {}, "Do not speculate: the best method, chain of 2, is 0.50 times"),
        ((1.0, 3.0, (0.2, 0.2, 0.2, 1.0, 3.0)), {}, "No clear gain"),
        (((2.0,) * 3, (3.0,) * 3, (1.0,) * 3), {}, "Too few prompts to rely on (3)"),
        ((2.0, 3.0, 1.0), {"loops": True}, "5 of 5 texts repeat themselves"),
        # the clock's noise is no gain
        ((2.0, 3.0, 1.9), {"rounds": 10, "accepted": 0}, "hardly a guess of any method was"),
    ],
)
def test_the_verdict_is_in_words(seconds, more, said):
    assert said in verdict(method_summary(table(*seconds, **more)))


def test_the_verdict_passes_over_a_text_that_is_not_the_targets():
    broken = table(0.1, names=("broken",), same=False, margin=0.7, rounding=False)
    tied = table(1.5, names=("tied",), same=False, margin=1e-5, rounding=True)
    told = method_summary(pd.concat([table(2.0, 3.0, 1.0), broken, tied]))
    assert told.same.tolist() == ["yes", "yes", "yes", "no", "near ties"]
    said = verdict(told)
    assert said.startswith("Speculate: chain of 2") and said.endswith("rounding: broken.")
    plain = table(2.0, 3.0, names=(PLAIN, HUGGING_PLAIN))
    said = verdict(method_summary(pd.concat([plain, broken])))
    assert said.startswith("Do not speculate: no method wrote the target's own text.")
    idle = table(1.0, names=("idle",), rounds=10, accepted=0)
    said = verdict(method_summary(pd.concat([plain, broken, idle])))
    assert said.startswith("Do not speculate: hardly a guess of any method that wrote")
