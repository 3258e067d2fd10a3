"""Models of one's own: folders in hub format, and what is refused."""

import shutil

import pytest
import torch
from huggingface_hub import constants
from own_models import changed, gpt2, llama, swap, tokenizer, without_tokenizer
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5ForConditionalGeneration

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.race import families
from specdec_lib.measure.sweep import stacks
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.models.loading import load_model, load_seq2seq
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


def test_the_match_tables_of_own_models_are_the_default_one(own, folders):
    assert own.match("draft", Sampler(0.3, top_k=5), siblings="iid").name == "default"
    with pytest.raises(ValueError, match=r"no match table of n-gram for draft, ranked, .*: draft"):
        stacks.scout(own, Sampler(1.0))
    three = load_ladder(**folders, device="cpu")
    assert [model.name for model in three.models] == ["target", "middle", "draft"]
    assert three.match("draft", Sampler(1.0), obeyed="middle").name == "default"


def test_the_staged_notebooks_grid_leaves_out_what_an_own_pair_lacks(own):
    grid = stacks.staged_settings(own)
    names = {setting.name for setting in grid}
    assert {"target", "chain of 5, none", "tree of 16, none", "tree of 16, Max-Gram"} <= names
    assert not any("n-gram" in name for name in names)
    prompt = Prompt("one", TEXT, "own", "held-out", "here")
    table = sweep(grid, [prompt], own, max_new_tokens=8, progress=False)
    assert len(table) == len(grid) and table.groupby("temperature").tokens.nunique().max() == 1


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


def test_a_fitted_draft_repeats_its_last_row_and_keeps_the_others(tmp_path):
    folder = llama(tmp_path / "draft", rows=4096)
    before, after, cut = (
        load_model(folder, "draft", device="cpu", vocabulary=size).model.lm_head.weight
        for size in (None, 4100, 4000)
    )
    assert torch.equal(after[:4096], before) and torch.equal(cut, before[:4000])
    assert torch.equal(after[4096:], before[-1:].expand(4, -1))


def test_folders_that_do_not_go_together_are_refused(tmp_path, folders, own):
    shutil.copytree(folders["draft"], tmp_path / "swapped")
    changed(tmp_path / "swapped", swap)
    target = folders["target"]
    alone, bare = (without_tokenizer(llama(tmp_path / name)) for name in ("alone", "bare"))
    small = llama(tmp_path / "small", rows=4000)
    for given, complaint in {
        (target, tmp_path / "swapped"): "the draft must share the target's tokenizer: token 1000",
        (alone, bare): r"alone has no tokenizer.*tokenizer\.json",
        (target, bare): "no tokenizer",
        (small, folders["draft"]): "tokenizer knows 4,096 tokens, and the target embeds 4,000",
        (target, small): "tokenizer knows 4,096 tokens, and the draft embeds 4,000",
        (target, None): r"a target and a draft at least, got target=.* and draft=None",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            load_ladder(*given, device="cpu")


def test_a_prompt_that_a_model_cannot_read_is_refused(tmp_path, folders):
    ladder = load_ladder(folders["target"], llama(tmp_path / "short", positions=16), device="cpu")
    assert ladder.max_positions == 16 and ladder.encode("def f(x):")
    with pytest.raises(ValueError, match=r"the prompt long has \d+ tokens, and draft reads"):
        ladder.encode(Prompt("long", "x = 1\n" * 20, "own", "held-out", "here"))


def test_a_folder_that_lacks_a_weight_is_refused_in_one_line(tmp_path, folders):
    names = "partial", "unknown", "empty"
    partial, unknown, empty = (shutil.copytree(folders["target"], tmp_path / it) for it in names)
    weights = load_file(partial / "model.safetensors")
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    (unknown / "config.json").write_text('{"model_type": "unheard-of"}', encoding="utf-8")
    (empty / "model.safetensors").unlink()
    for folder, complaint in {
        partial: r"^folder .*partial cannot be read .*: its tensors .*, 1 missing: .*up_proj",
        unknown: r"^folder .*unknown cannot be read .*`unheard-of`.*$",
        empty: r"^folder .* cannot be read .*no file named model\.safetensors",
    }.items():
        with pytest.raises(ValueError, match=complaint) as refused:
            load_ladder(folder, folders["draft"], device="cpu")
        assert len(str(refused.value).splitlines()) == 1


T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}


def test_models_of_another_kind_or_with_pickled_weights_are_refused(tmp_path, folders):
    t5, pickled = tmp_path / "t5", shutil.copytree(folders["draft"], tmp_path / "pickled")
    T5ForConditionalGeneration(T5Config(vocab_size=64, **T5)).save_pretrained(t5)
    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    for load, folder, complaint in (
        (load_model, t5, r"it is an encoder-decoder model \(t5\), which `load_seq2seq` reads"),
        (load_seq2seq, folders["target"], r"no encoder-decoder model \(llama\).*`load_model"),
        (load_model, pickled, r"its weights are pickled \(pytorch_model\.bin\).*safetensors"),
    ):
        with pytest.raises(ValueError, match=complaint):
            load(folder, "target", device="cpu")


@pytest.mark.parametrize("missing", ["/no/such/folder", "./models/mine", "a/b/c", "two words"])
def test_a_path_that_is_no_folder_is_not_looked_for_on_the_hub(missing):
    with pytest.raises(ValueError, match=f"a local folder in hub format, or .*; {missing} is"):
        load_model(missing, "target", device="cpu")


@pytest.mark.parametrize("offline, why", [(True, "HF_HUB_OFFLINE=1"), (False, "127.0.0.1:9")])
def test_a_hub_that_is_out_of_reach_is_named_at_once(monkeypatch, offline, why):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match=f"hub model nobody/nothing-at-all .*{why}"):
        load_model("nobody/nothing-at-all", "target", device="cpu")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_bench_and_the_readmes_table_leave_out_what_an_own_pair_lacks(own, ladder, temperature):
    """What is left changes no token."""
    sampler = Sampler(temperature)
    plain = emitted(own, NoDraft(), sampler).tokens
    for method in families.OURS:
        found = families.drafts(own, sampler, method)
        assert 0 < len(found) < len(families.drafts(ladder, sampler, method))
        assert not any("n-gram" in name or "middle" in name for name in found)
        for draft in list(found.values())[:: max(1, len(found) // 2)]:
            assert emitted(own, draft, sampler).tokens == plain
    assert len(emitted(own, ChainDraft(own.target, 3), sampler).rounds) < len(plain)
    whole, less = (set(stacks.table_drafts(one, sampler)) for one in (ladder, own))
    missing = ("n-gram", "staged", "cascade")
    assert whole - less == {name for name in whole if name.startswith(missing)} and less < whole


def test_rows_of_own_models_are_kept_and_may_be_made_by_workers(own, folders, tmp_path):
    given = {name: str(folders[name]) for name in ("target", "draft")} | {"device": "cpu"}
    recipe = Recipe("specdec_lib.workload:load_ladder", given)
    settings = Recipe("specdec_lib.measure.sweep.stacks:table_settings")
    asked = [Prompt("one", TEXT, "own", "held-out", "here")]
    options = {"max_new_tokens": 6, "progress": False, "keep": tmp_path}
    first, again = (sweep(settings, asked, models, **options) for models in (own, recipe))
    assert first.seconds.tolist() == again.seconds.tolist() and len(list(tmp_path.iterdir())) == 1


def test_a_pair_of_t5_folders_of_ones_own_decodes(tmp_path):
    config = T5Config(vocab_size=4096, decoder_start_token_id=1, eos_token_id=0, **T5)
    target, draft = tmp_path / "target", tmp_path / "draft"
    for seed, folder in enumerate((target, draft)):
        torch.manual_seed(seed)
        T5ForConditionalGeneration(config).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    pair = load_pair(target, draft, device="cpu")
    assert pair.stop_tokens == (0,) and pair.card["models"]["draft"]["source"] == str(draft)
    plain, chained = (
        decode(pair.target, draft, pair.encode(TEXT), Chance(0), max_new_tokens=8).tokens
        for draft in (NoDraft(), ChainDraft(pair.draft, 3))
    )
    assert plain == chained
    with pytest.raises(ValueError, match=r"a pair of your own .*, got target=.* and draft=None"):
        load_pair(target, device="cpu")
