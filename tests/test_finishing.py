"""A finished ladder is what was trained, on both runtimes; a file not its own is refused."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny import HEAD, LAYERS, finished_folder, frequent_tokens, target_network, tiny_ladder
from transformers import AutoModelForCausalLM

import specdec_lib.workload
from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.students import build_student, own_weights
from specdec_lib.suite.distil import finishing
from specdec_lib.workload import Ladder, load_ladder

PROMPT = (7, 300, 41, 7)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished ladder, and its target in the cache folder."""
    root = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECDEC_CACHE", str(root))
        finished_folder(root)
    return root


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of those, to spoil."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    return tmp_path / "ladder"


def scores(ladder: Ladder, name: str) -> torch.Tensor:
    context = Context.of(PROMPT)
    return getattr(ladder, name).score(context, TokenTree.rooted(context))[0]


def test_a_finished_ladder_loads_with_the_weights_that_were_trained(folder):
    ladder, target = load_ladder(folder=folder, device="cpu"), target_network()
    for name, layers in LAYERS.items():
        network = getattr(ladder, name).model
        trained, loaded = own_weights(build_student(target, layers)), own_weights(network)
        assert trained.keys() == loaded.keys()
        for key, weights in trained.items():
            step = weights.abs().amax(dim=-1, keepdim=True) / 127 if weights.dim() > 1 else 0
            assert ((loaded[key] - weights).abs() <= 0.501 * step).all()
        assert network.model.embed_tokens.weight is ladder.target.model.model.embed_tokens.weight
        possible = torch.nonzero(~scores(ladder, name).isneginf())[:, 0]
        assert set(possible.tolist()) == {*frequent_tokens(), *PROMPT}
    torch.testing.assert_close(scores(ladder, "target"), scores(tiny_ladder(), "target"))
    assert (ladder.katz.probs(PROMPT) == tiny_ladder().katz.probs(PROMPT)).all()
    layers = [3, *(len(one) for one in LAYERS.values())]
    sizes = [ladder.card["models"][name]["parameters"] for name in ("target", *LAYERS)]
    assert [size / sizes[0] for size in sizes] == [one / 3 for one in layers]
    assert [ladder.card["models"][name]["of"] for name in LAYERS] == [*LAYERS]
    assert ladder.stop_tokens == (0,) and ladder.measured == ()


def test_drafts_of_a_finished_ladder_guess_and_change_no_token(folder):
    ladder = load_ladder(folder=folder, device="cpu", runtime="fast")
    trees = (TreeDraft(draft, budget=6) for draft in (ladder.middle, ladder.draft))
    run = partial(decode, ladder.target, max_new_tokens=32)
    plain, *guessed = (run(draft, PROMPT, Chance(1)) for draft in (NoDraft(), *trees))
    assert all(one.tokens == plain.tokens and len(one.rounds) < 28 for one in guessed)


def test_finishing_again_leaves_nothing_of_what_was_there(folder):
    for name in ("README.md", "match.json", "draft-00001-of-00002.safetensors"):
        (folder / name).write_text("old")
    head = sorted(frequent_tokens())[: HEAD // 2]
    finishing.finish(folder.parent / "drafts", head, folder)
    listed = json.loads((folder / "card.json").read_text())["files"].keys()
    assert {path.name for path in folder.iterdir()} == {*listed, "README.md", "card.json"}
    assert {"draft.safetensors", "head.json"} <= listed and "match.json" not in listed
    possible = ~scores(load_ladder(folder=folder, device="cpu"), "draft").isneginf()
    assert possible.sum() == len({*head, *PROMPT})


@pytest.mark.parametrize("name", ["card.json", "head.json", "katz.npz", "draft.safetensors"])
def test_a_damaged_or_missing_file_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        load_ladder(folder=folder)
    (folder / name).unlink()
    if name != "head.json":  # which tells this ladder from another
        with pytest.raises(ValueError, match="is missing; restore it with `git checkout data`"):
            load_ladder(folder=folder)


def test_runtimes_and_dtypes_that_there_are_not_are_refused(folder):
    for options, complaint in (
        ({"runtime": "quick"}, "reference, fast, int8, auto, got 'quick'"),
        ({"runtime": "fast", "dtype": "bfloat16"}, "the fast runtime computes in float32"),
        ({"dtype": "int8"}, "float32, float64, bfloat16, got 'int8'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            load_ladder(folder=folder, **options)


def test_a_target_that_is_not_prepared_is_named(folder, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE", str(folder / "elsewhere"))
    with pytest.raises(ValueError, match=r"the target is not prepared: .*`specdec setup`"):
        load_ladder(folder=folder)


def test_exported_drafts_are_whole_models(folder, tmp_path, monkeypatch):
    ladder = load_ladder(folder=folder, device="cpu")
    wanted = {name: scores(ladder, name) for name in LAYERS}
    monkeypatch.setattr(specdec_lib.workload, "load_ladder", lambda **_: ladder)
    finishing.export(tmp_path / "out")
    sources = {name: tmp_path / "out" / name for name in LAYERS}
    own = load_ladder(target=tmp_path / "smollm2", **sources, device="cpu")
    for name, cut in wanted.items():
        found = scores(own, name)
        torch.testing.assert_close(found[cut.isfinite()], cut[cut.isfinite()])
        assert found.isfinite().all() and not cut.isfinite().all()
        kind = type(AutoModelForCausalLM.from_pretrained(sources[name]))
        assert kind is type(ladder.target.model)


def test_a_missing_draft_is_refused_before_anything_is_written(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder.parent / "drafts" / "middle.safetensors").unlink()
    with pytest.raises(ValueError, match=r"middle\.safetensors is missing"):
        finishing.finish(folder.parent / "drafts", [1, 2], folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
