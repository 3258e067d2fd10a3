"""`specdec distil` for a target of one's own: a tiny random model of another family, another
tokenizer, with a chat template and without.
"""

import itertools
from dataclasses import replace
from pathlib import Path

import own_models
import papermill
import pytest
import torch
import transformers as hub
from verbs import run

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import file_digest
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.fast.model import FastModel
from specdec_lib.suite.distil import own, own_text, writing
from specdec_lib.suite.distil.own import layers_read, make_ladder, own_layers
from specdec_lib.suite.distil.own_text import OwnPlan
from specdec_lib.suite.notebook import NOTEBOOKS
from specdec_lib.workload import load_ladder

PLAN = OwnPlan(answer_tokens=1500, looks=1, batch_tokens=512, sequences=4, sampled=500, matched=1)
TEMPLATE = (
    "{% for one in messages %}{{ one.role }}: {{ one.content }}{{ '<|endoftext|>' if one.role =="
    " 'assistant' else '\n' }}{% endfor %}{{ 'assistant: ' if add_generation_prompt }}"
)
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "vocab_size": 4096}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2}
SIZES |= {"max_position_embeddings": 512, "eos_token_id": 0, "tie_word_embeddings": True}
SIZES |= {"bos_token_id": None, "pad_token_id": None}
FAMILIES = {
    "qwen3": (hub.Qwen3ForCausalLM, {"head_dim": 8}),
    "granite": (hub.GraniteForCausalLM, {"logits_scaling": 2.0, "embedding_multiplier": 2.0}),
}
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Short texts and parts, and few samples."""
    monkeypatch.setattr(own_text, "PART", 600)
    monkeypatch.setattr(writing, "ANSWER_TOKENS", 60)
    monkeypatch.setattr(own_text, "SHORT_POSITIONS", 400)
    monkeypatch.setattr("specdec_lib.suite.distil.ngrams.ROWS", 8)


def target(folder: Path, family: str = "qwen3", *, template: bool = True) -> Path:
    """A target's folder."""
    made, more = FAMILIES[family]
    torch.manual_seed(1)
    made(made.config_class(**SIZES | more)).save_pretrained(folder)
    tokenizer = own_models.tokenizer()
    tokenizer.chat_template = TEMPLATE if template else None
    tokenizer.save_pretrained(folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {one.name: file_digest(one) for one in folder.iterdir() if one.is_file()}


@pytest.mark.parametrize("family, template", [("qwen3", True), ("granite", False)])
def test_the_ladder_of_ones_own_target_decodes_exactly_on_every_runtime(family, template, tmp_path):
    source = target(tmp_path / "target", family, template=template)
    judged = make_ladder(source, tmp_path / "ladder", PLAN)
    assert {*judged.draft} == {"draft", "middle", "reading"}
    for runtime in ("reference", "fast", "int8"):
        ladder = load_ladder(str(tmp_path / "ladder"), runtime=runtime, device="cpu")
        assert isinstance(ladder.target, FastModel) == (runtime != "reference")
        given = ladder.encode("Write a poem.")
        for sampler in (Sampler(0), Sampler(1.0)):
            plain = decode(ladder.target, NoDraft(), given, Chance(1, sampler), max_new_tokens=24)
            for draft in (ladder.draft, ladder.middle, ladder.reading):
                match = ladder.match(draft.name, sampler)
                tree = TreeDraft(draft, budget=6, depth=3, match=match)
                found = decode(ladder.target, tree, given, Chance(1, sampler), max_new_tokens=24)
                assert found.tokens == plain.tokens


def test_a_notebook_takes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_FIGURES", str(tmp_path / "figures"))
    make_ladder(target(tmp_path / "target"), tmp_path / "ladder", PLAN)
    notebook = NOTEBOOKS / "01_tree_construction.ipynb"
    given = {"models": str(tmp_path / "ladder"), "prompts": 2, "max_new_tokens": 16}
    ran = papermill.execute_notebook(
        str(notebook), str(tmp_path / "ran.ipynb"), given, progress_bar=False, cwd=NOTEBOOKS.parent
    )
    said = "".join(
        output.get("text", "") for cell in ran.cells for output in cell.get("outputs", ())
    )
    assert "decoded:" in said and "stored texts" not in said, "no text of another target is taken"
    assert (tmp_path / "figures" / "01_speed_up.csv").is_file()


def test_a_run_that_was_interrupted_again_and_again_gives_the_same_ladder(tmp_path, monkeypatch):
    source = target(tmp_path / "target")
    make_ladder(source, tmp_path / "whole", PLAN)
    real = own.write_whole
    interrupted = 0
    for stop in itertools.count():
        calls = itertools.count()

        def write_or_stop(path, content, calls=calls, stop=stop):
            if next(calls) == 2 + stop:
                raise KeyboardInterrupt
            real(path, content)

        for module in (own, own_text):
            monkeypatch.setattr(module, "write_whole", write_or_stop)
        try:
            make_ladder(source, tmp_path / "cut", PLAN)
        except KeyboardInterrupt:
            interrupted += 1
            assert stop < 40
            continue
        break
    assert interrupted > 1
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")


def test_a_folder_that_was_begun_with_other_options_and_other_kinds_are_refused(tmp_path):
    source = target(tmp_path / "target")
    make_ladder(source, tmp_path / "out", PLAN)
    with pytest.raises(ValueError, match=r"begun with another looks; name another --out"):
        make_ladder(source, tmp_path / "out", replace(PLAN, looks=2))
    with pytest.raises(ValueError, match=r"a target has 2 layers or more, .* has 1"):
        make_ladder(own_models.llama(tmp_path / "llama"), tmp_path / "one", PLAN)
    gpt2 = own_models.gpt2(tmp_path / "gpt2")
    with pytest.raises(ValueError, match=r"drafts are made of layers of llama, .*, got 'gpt2'"):
        make_ladder(gpt2, tmp_path / "another", PLAN)


def test_a_worker_writes_the_part_that_would_be_written_here(tmp_path):
    source = str(target(tmp_path / "target"))
    network, tokenizer = own_text._own_target(source, "cpu")
    for number in range(2):
        (row,) = own_text.part_rows(None, number, source=source, plan=PLAN, device="cpu")
        here = own_text.written_part(network, tokenizer, PLAN, number)
        assert row["content"] == own_text.pack(here)
    assert own_text.pack(here) != own_text.pack(own_text.written_part(network, tokenizer, PLAN, 0))


def test_a_ladder_whose_target_has_changed_is_refused_and_one_beside_a_draft(tmp_path):
    source = target(tmp_path / "target")
    make_ladder(source, tmp_path / "ladder", PLAN)
    with pytest.raises(ValueError, match="is a whole ladder; got a draft beside it"):
        load_ladder(str(tmp_path / "ladder"), str(source))
    config = source / "config.json"
    config.write_text(config.read_text().replace("512", "511"))
    with pytest.raises(ValueError, match=r"whose config\.json is another one now"):
        load_ladder(str(tmp_path / "ladder"))


@pytest.mark.parametrize(
    "count, layers, read",
    [
        (30, (0, 10, 19, 29), (3, 16, 28)),
        (16, (0, 15), (1, 8, 14)),
        (4, (0, 3), (0, 2)),
        (2, (), (0,)),
    ],
)
def test_layers_of_a_middle_model_and_layers_that_are_read(count, layers, read):
    assert own_layers(count) == layers
    assert layers_read(count) == read


def test_the_groups_name_alone_is_the_command(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        run("distil", "--target", str(tmp_path / "none"), "--out", str(tmp_path / "out"))
