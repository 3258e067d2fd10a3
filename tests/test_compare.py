"""The comparison of a pair of models: what is timed, what its table says in words, the command."""

import re

import pandas as pd
import pytest
from own_models import gpt2, llama

from specdec_lib.core.chance import Sampler
from specdec_lib.measure import compare
from specdec_lib.measure.compare import PLAIN, USUAL, compare_methods, verdict
from specdec_lib.measure.race import harness
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import OURS
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.hugging import GENERATE, HF
from specdec_lib.measure.race.table import over_plain, ratio_table
from specdec_lib.workload import Prompt, load_ladder

pytestmark = pytest.mark.usefixtures("unchecked")
TEXTS = ("a", "def f(x):\n    return"), ("b", "class A:\n    def g")
PROMPTS = [Prompt(*named, "own", "held-out", "here") for named in TEXTS]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    return load_ladder(llama(root / "target", width=64), gpt2(root / "draft", seed=2), device="cpu")


def compared(ladder, prompts=PROMPTS, *given, **named) -> pd.DataFrame:
    return over_plain(compare_methods(ladder, prompts, *given, progress=False, **named))


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0, top_k=20)], ids=str)
def test_every_method_is_compared_and_every_text_is_the_targets_own(own, sampler):
    table = compared(own, PROMPTS, sampler, max_new_tokens=6).set_index("method")
    assert {*table.index} == {AUTOREGRESSIVE, *OURS, *HF} == {AUTOREGRESSIVE, *USUAL}
    assert (table.prompts == 2).all() and (table.wrong == 0).all() and table.margin.isna().all()
    assert table.tokens.nunique() == 1
    assert table.tokens_per_round[AUTOREGRESSIVE] == table.ratio[AUTOREGRESSIVE] == 1


def test_generation_configurations_of_ones_own_models_are_put_aside_and_back(own, monkeypatch):
    target, draft, seen = own.target.model, own.draft.model, []
    judge = harness._difference
    monkeypatch.setattr(
        harness,
        "_difference",
        lambda *given: seen.append(draft.generation_config.repetition_penalty) or judge(*given),
    )
    for model in (target, draft):
        monkeypatch.setattr(model.generation_config, "repetition_penalty", 1.5)
    rows = compared(own, PROMPTS[:1], max_new_tokens=6)
    assert (rows.wrong == 0).all() and seen and 1.5 not in seen
    assert draft.generation_config.repetition_penalty == 1.5


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        ({"prompts": []}, "got 0 prompts"),
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"max_new_tokens": 255}, "prompt a has .* reads at most 256"),
    ],
)
def test_what_cannot_be_compared_is_refused(own, wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        compared(own, **wrong)


def raced(**seconds: float | tuple[float, ...]) -> list[Timing]:
    """Timings of methods with one number of seconds each, or one per prompt."""
    return [
        Timing(method, "", "8", 0.0, 0, str(number), 10, 10, one, 10 if method in PLAIN else 5)
        for method, given in seconds.items()
        for number, one in enumerate(given if isinstance(given, tuple) else (given,) * 5)
    ]


def judged(plain, hugging, tree, more: tuple[Timing, ...] = (), **changed) -> str:
    timings = raced(**{AUTOREGRESSIVE: plain, GENERATE: hugging})
    trees = [Timing(**vars(one) | changed) for one in raced(tree=tree)]
    return verdict(ratio_table([*timings, *trees, *more]))


@pytest.mark.parametrize(
    "seconds, more, said",
    [
        ((2.0, 3.0, 1.0), {}, "Speculate: tree (8) is 2.00 times as fast as plain decoding."),
        ((1.0, 3.0, 2.0), {}, "Do not speculate: tree (8) is 0.50 times"),
        ((4.0, 1.0, 2.0), {}, "0.50 times as fast as plain decoding by Hugging Face"),
        ((1.0, 3.0, (0.2, 0.2, 0.2, 1.0, 3.0)), {}, "No clear gain"),
        (((2.0,) * 3, (3.0,) * 3, (1.0,) * 3), {}, "No clear gain"),  # too few prompts
        ((2.0, 3.0, 1.0), {"repetition": 0.4}, "texts repeat themselves"),
        # the clock's noise is no gain
        ((2.0, 3.0, 1.9), {"rounds": 10}, "Do not speculate: hardly a guess was accepted."),
        ((2.0, 3.0, 1.0), {"margin": 1e-5}, "Speculate: tree"),
        ((2.0, 3.0, 1.0), {"margin": 0.7, "wrong": True}, "more than rounding: tree."),
    ],
)
def test_the_verdict_is_in_words(seconds, more, said):
    assert said in judged(*seconds, **more)


def test_the_verdict_passes_over_a_text_that_is_not_the_targets():
    broken = [Timing(**vars(one) | {"wrong": True}) for one in raced(broken=0.1)]
    assert judged(2.0, 3.0, 1.0, tuple(broken)).startswith("Speculate: tree (8) is 2.00")


def test_the_command_compares_two_folders_on_a_file_of_prompts(own, tmp_path, capsys):
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    mine, csv = tmp_path / "mine.jsonl", tmp_path / "new" / "table.csv"
    mine.write_text('{"text": "def f(x):"}\n{"text": "import "}\n{"text": "x = 1\\n"}\n')
    given = ["--target", sources[0], "--draft", sources[1], "--prompts", str(mine)]
    given += ["--csv", str(csv), "--limit", "2", "--max-new-tokens", "5", "--device", "cpu"]
    with pytest.raises(ValueError, match="prompt sets are chat, code, summary"):
        compare.main(["--prompts", "poems"])
    compare.main(given)
    said = capsys.readouterr().out
    assert "2 prompts of" in said and set(pd.read_csv(csv).method) == {AUTOREGRESSIVE, *USUAL}
    assert not re.search(r"\d–\d", said)  # no interval from two prompts
    assert re.search("Speculate|not speculate|No clear gain", said.strip().splitlines()[-1])
