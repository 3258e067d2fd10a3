"""Models of one's own: folders in hub format, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from own_models import changed, gpt2, llama, swap, t5, tokenizer, without_tokenizer
from transformers import Gemma2Config, Gemma2ForCausalLM

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Reviewed
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.settings import bench
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.models.loading import load_model, load_seq2seq, why_not_fast
from specdec_lib.workload import Prompt, load_ladder, load_pair

TEXT = "def f(x):\n    return"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target, a middle model and a draft."""
    root = tmp_path_factory.mktemp("models")
    return {
        "target": llama(root / "target", width=64),
        "middle": llama(root / "middle", seed=1),
        "draft": gpt2(root / "draft", seed=2),
    }


@pytest.fixture(scope="module")
def own(folders):
    return load_ladder(folders["target"], folders["draft"], device="cpu")


def emitted(ladder, draft, sampler=Sampler(0), rule=look_up):
    options = {"max_new_tokens": 12, "stop_tokens": ladder.stop_tokens, "rule": rule}
    return decode(ladder.target, draft, ladder.encode(TEXT), Chance(3, sampler), **options)


def test_a_pair_of_folders_is_a_ladder_without_a_katz_table(own, folders):
    assert own.katz is None and own.middle is None and own.max_gram.bigrams is None
    assert [model.name for model in own.models] == ["target", "draft"]
    assert own.stop_tokens == (0,) and own.max_positions == 256
    assert own.encode(TEXT) == tuple(tokenizer().encode(TEXT))
    assert "".join(map(own.text, own.encode(TEXT))) == TEXT
    assert own.card["models"]["draft"]["source"] == str(folders["draft"])
    assert own.card["models"]["target"]["parameters"] > 4096 * 64
    three = load_ladder(**folders, device="cpu")
    assert [model.name for model in three.models] == ["target", "middle", "draft"]
    assert three.match("draft", Sampler(1.0), obeyed="middle", siblings="iid").name == "default"


@pytest.mark.parametrize("rows,tied", [(4200, False), (4200, True), (4096, True)])
def test_a_draft_with_fewer_or_more_rows_is_fitted_and_the_target_left_alone(tmp_path, rows, tied):
    few = llama(tmp_path / "few", seed=4, tied=tied)
    many = llama(tmp_path / "many", seed=5, rows=rows, tied=tied)
    for target, draft, vocabulary in ((few, many, 4096), (many, few, rows)):
        ladder = load_ladder(target, draft, device="cpu")
        alone = load_model(target, "target", device="cpu").model
        assert ladder.target.vocabulary == ladder.draft.vocabulary == vocabulary
        pairs = zip(ladder.target.model.parameters(), alone.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
        chain = ChainDraft(ladder.draft, 3)
        for sampler in (Sampler(0), Sampler(1.0)):
            plain = emitted(ladder, NoDraft(), sampler).tokens
            assert emitted(ladder, chain, sampler).tokens == plain
        drawn = ChainDraft(ladder.draft, 3, siblings="iid")
        assert emitted(ladder, drawn, Sampler(1.0), reject).tokens
        before, after = load_model(draft, "draft", device="cpu"), ladder.draft
        old, new = (one.model.lm_head.weight for one in (before, after))
        assert torch.equal(new[: len(old)], old[: len(new)])  # and the last row is repeated
        assert torch.equal(new[len(old) :], old[-1:].expand(max(0, len(new) - len(old)), -1))


def test_folders_that_do_not_go_together_are_refused(tmp_path, folders, own):
    shutil.copytree(folders["draft"], tmp_path / "swapped")
    changed(tmp_path / "swapped", swap)
    target = folders["target"]
    alone, bare = (without_tokenizer(llama(tmp_path / name)) for name in ("alone", "bare"))
    small = llama(tmp_path / "small", rows=4000)
    for given, complaint in {
        (target, tmp_path / "swapped"): "share the target's tokenizer: .* is number .000 to",
        (alone, bare): r"alone has no tokenizer.*tokenizer\.json",
        (target, bare): "no tokenizer",
        (small, folders["draft"]): "tokenizer knows 4,096 tokens, and the target embeds 4,000",
        (target, small): "tokenizer knows 4,096 tokens, and the draft embeds 4,000",
        (target, None): r"a target and a draft at least, got target=.* and draft=None",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            load_ladder(*given, device="cpu")


@pytest.mark.parametrize("made", [llama, gpt2])
def test_what_a_folder_lacks_of_a_tokenizer_is_said_in_a_whole_sentence(tmp_path, made):
    """Control: why files that are there cannot be read is a sentence of Transformers, not cut."""
    folder = without_tokenizer(made(tmp_path / "bare"))
    with pytest.raises(ValueError) as refused:
        load_tokenizer(folder)
    assert str(refused.value) == (
        f"{folder} has no tokenizer: there is none of tokenizer.json, vocab*, *.model in it; save"
        " a tokenizer.json (`tokenizer.save_pretrained`), or name a folder as `tokenizer`"
    )
    (folder / "vocab.txt").write_text("a\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(ValueError, match=r"that can be read; .* from one of: \(1\) .*\.\)$"):
        load_tokenizer(folder)


def test_a_prompt_that_a_model_cannot_read_is_refused(tmp_path, folders):
    ladder = load_ladder(llama(tmp_path / "short", positions=16), folders["draft"], device="cpu")
    assert ladder.max_positions == 16 and ladder.encode("def f(x):")
    said = r"the prompt long has \d+ tokens, and the target reads at most 16"
    with pytest.raises(ValueError, match=said):
        ladder.encode(Prompt("long", "x = 1\n" * 20, "own", "held-out", "here"))


@pytest.mark.parametrize("runtime", ["reference", "fast"])
def test_where_a_draft_reads_less_than_the_target_it_guesses_nothing_beyond(
    tmp_path, folders, runtime, unchecked
):
    short = llama(tmp_path / "short", seed=3, width=64, positions=16)
    ladder = load_ladder(folders["target"], short, device="cpu", runtime=runtime)
    texts = {"fits at first": ladder.encode("x = 1\n" * 3)[:12]}
    texts["does not fit"] = ladder.encode("x = 1\n" * 20)
    guesser = TreeDraft(ladder.draft, budget=4)
    drafts = {
        "chain": ChainDraft(ladder.draft, 3),
        "tree": guesser,
        "staged": StagedTree(guesser, MaxGram()),
        "staged chain": StagedChain(ladder.draft, MaxGram(), 3),
        "reviewed": Reviewed(ladder.draft, MaxGram()),
        "target and draft": Reviewed(ladder.target, ChainDraft(ladder.draft, 3)),
    }
    for sampler in (Sampler(0), Sampler(1.0)):
        for name, prompt in texts.items():
            chance = Chance(3, sampler)
            plain = decode(ladder.target, NoDraft(), prompt, chance, max_new_tokens=10)
            for draft in drafts.values():
                made = decode(ladder.target, draft, prompt, chance, max_new_tokens=10)
                assert made.tokens == plain.tokens
                guessed = sum(len(played.tree) - 1 for played in made.rounds)
                assert name == "fits at first" or draft.__class__ is Reviewed or not guessed


@pytest.mark.parametrize(
    "load, options, said",
    [
        (load_seq2seq, {}, r"no encoder-decoder model \(llama\), which `load_model` reads"),
        (load_model, {"dtype": "int8"}, "float32, float64, bfloat16"),
        (load_model, {"device": "tpu"}, 'device is "auto", "cpu" or'),
        (load_model, {"runtime": "quick"}, "reference, fast, int8, auto, got 'quick'"),
        (load_model, {"runtime": "fast", "dtype": "float64"}, "float32 on the CPU"),
    ],
)
def test_what_cannot_be_loaded_so_is_refused(folders, load, options, said):
    with pytest.raises(ValueError, match=said):
        load(folders["target"], "target", **options)


@pytest.mark.parametrize("source", ["a/b/c", "two words", "nobody/nothing-at-all", "x" * 400])
def test_what_is_no_folder_and_not_on_the_hub_is_refused(source):
    with pytest.raises(ValueError, match=f"folder in hub format, or .*; {source} cannot be had"):
        load_model(source, "target", device="cpu")
    for path in Path(source), f"./{source}":  # no hub is asked
        with pytest.raises(ValueError, match=rf"there is no folder (\./)?{source}"):
            load_model(path, "target", device="cpu")


def test_code_that_comes_with_a_model_is_not_run(folders, tmp_path, monkeypatch):
    folder = shutil.copytree(folders["target"], tmp_path / "coded")
    (folder / "conf.py").write_text("raise SystemExit('it ran')")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "conf.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # if anyone were asked
    with pytest.raises(ValueError, match="coded cannot be read"):
        load_model(folder, "target", device="cpu")


def test_auto_is_the_fast_runtime_where_that_knows_the_model(folders):
    for dtype, wanted, reason in (
        ("float32", "fast: float32 sums over float32 weights, ", None),
        ("bfloat16", "fast: float32 sums over bfloat16 weights, ", None),
        ("float64", "reference: ", "got a model in torch.float64 on cpu"),
    ):
        model = load_model(folders["draft"], "draft", device="cpu", runtime="auto", dtype=dtype)
        assert model.runtime.startswith(wanted)
        why = why_not_fast(model)
        assert why is None if reason is None else why.endswith(reason)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_bench_leaves_out_what_an_own_pair_lacks(own, ladder, temperature):
    """What is left changes no token."""
    sampler = Sampler(temperature)
    plain = emitted(own, NoDraft(), sampler).tokens
    for method in bench.OURS:
        found = bench.bench_settings(own, sampler, method)
        assert 0 < len(found) < len(bench.bench_settings(ladder, sampler, method))
        assert not any("n-gram" in one.name or "middle" in one.name for one in found)
        for one in found[:: max(1, len(found) // 2)]:
            assert emitted(own, one.draft, sampler).tokens == plain
    assert len(emitted(own, ChainDraft(own.target, 3), sampler).rounds) < len(plain)


def test_a_pair_of_t5_folders_of_ones_own_decodes(tmp_path):
    target, draft = (t5(tmp_path / name, seed=seed) for seed, name in enumerate(("big", "small")))
    pair = load_pair(target, draft, device="cpu", max_positions=40)
    assert (pair.start_token, pair.stop_tokens) == (1, (0,))
    assert pair.target.max_positions == pair.draft.max_positions == 40
    assert pair.card["models"]["draft"]["source"] == str(draft)
    context = pair.encode(TEXT)
    assert "".join(map(pair.text, context.source)) == TEXT and context.tokens == (1,)
    for sampler in (Sampler(0), Sampler(1.0)):
        made = [
            decode(pair.target, draft, context, Chance(0, sampler), max_new_tokens=12)
            for draft in (NoDraft(), ChainDraft(pair.draft, 3), ChainDraft(pair.target, 3))
        ]
        assert made[0].tokens == made[1].tokens == made[2].tokens
        assert len(made[2].rounds) < len(made[0].rounds)
    given = torch.tensor([context.source])
    wanted = pair.target.model.generate(given, max_new_tokens=12, do_sample=False)
    plain = decode(pair.target, NoDraft(), context, Chance(0), max_new_tokens=12)
    assert [1, *plain.tokens] == wanted[0].tolist()


def test_t5_folders_that_do_not_go_together_are_refused(tmp_path):
    target = t5(tmp_path / "target")
    swapped = t5(tmp_path / "swapped", seed=1)
    changed(swapped, swap)
    bare = without_tokenizer(t5(tmp_path / "bare"))
    startless = t5(tmp_path / "startless", decoder_start_token_id=None)
    for given, complaint in {
        (target, None): r"a pair of your own has a target and a draft, got target=.* draft=None",
        (target, swapped): "the draft must share the target's tokenizer: .* is number .000 to",
        (target, bare): "bare has no tokenizer",
        (target, t5(tmp_path / "few", rows=4000)): "knows 4,096 tokens, and the draft embeds 4,000",
        (target, t5(tmp_path / "more", rows=4160)): "the target has 4,096 and the draft 4,160",
        (target, gpt2(tmp_path / "gpt2")): r"no encoder-decoder model \(gpt2\), which `load_model`",
        (startless, target): r"t5 \(.*startless\) names no decoder_start_token_id",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            load_pair(*given, device="cpu")
    with pytest.raises(ValueError, match="max_positions of load_pair must be a whole number of 4"):
        load_pair(target, target, max_positions=3)
    found = load_pair(bare, bare, tokenizer=target, device="cpu")  # the tokenizer lies elsewhere
    assert found.encode(TEXT).source == tuple(tokenizer().encode(TEXT))


def test_where_auto_takes_the_reference_nothing_is_rounded_to_the_files_precision(tmp_path):
    """The scale of Gemma's embeddings is none of bfloat16's numbers."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "head_dim": 8}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 61}
    config = Gemma2Config(**sizes, max_position_embeddings=64)
    Gemma2ForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    context = Context.of((1, 2, 3))
    found, wanted, coarse = (
        load_model(tmp_path, "target", device="cpu", **options).score(
            context, TokenTree.rooted(context)
        )
        for options in ({"runtime": "auto"}, {}, {"dtype": "bfloat16"})
    )
    assert torch.equal(found, wanted) and not torch.equal(found, coarse.float())


def test_a_name_that_is_too_long_for_a_file_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"there is no folder"):
        load_ladder("/" + "x" * 5000, "/" + "y" * 5000)
