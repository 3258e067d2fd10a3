"""A finished ladder is what was trained, on both runtimes; a file not its own is refused. Match
tables: what is measured is what is accepted; what is stored is found again.
"""

import json
import shutil
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save
from tiny import (
    HEAD,
    LAYERS,
    finished_folder,
    frequent_tokens,
    target_network,
    tiny_ladder,
    tokenizer,
    written_text,
)
from transformers import AutoModelForCausalLM

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import file_digest
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.reading import ReadingDraft
from specdec_lib.models.students import build_student, own_weights, pack_weights, save_student
from specdec_lib.suite.distil import finishing
from specdec_lib.suite.distil.finishing import EDGES, KINDS, RANKS, match_tables
from specdec_lib.workload import MATCH, Ladder, Measured, load_ladder, load_prompts, seeds
from tests.verbs import run

PROMPT = (7, 300, 41, 7)
T1 = Sampler(1.0)
LENGTH = 16
kind = itemgetter("guesser", "obeyed", "siblings")


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
    trees = [TreeDraft(draft, budget=6) for draft in (ladder.middle, ladder.draft)]
    run = partial(decode, ladder.target, max_new_tokens=32)
    plain = run(NoDraft(), PROMPT, Chance(1))
    assert len(plain.rounds) == 32
    for tree in trees:
        guessed = run(tree, PROMPT, Chance(1))
        assert guessed.tokens == plain.tokens and len(guessed.rounds) < 28


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


def test_the_card_goes_on_saying_on_what_the_same_n_grams_were_counted(folder):
    drafts = folder.parent / "drafts"

    def counted_on() -> int:
        finishing.finish(drafts, [1, 2], folder)
        return json.loads((folder / "card.json").read_text())["katz"]["sampled_tokens"]

    assert counted_on() == 0
    card = json.loads((folder / "card.json").read_text())
    card["katz"]["sampled_tokens"] = 77
    (folder / "card.json").write_text(json.dumps(card))
    assert counted_on() == 77
    Katz.fit(written_text()[:9], len(tokenizer())).save(drafts / "katz.npz")
    assert counted_on() == 0
    np.save(drafts / "draft-samples-0.npy", np.zeros(5, np.int32))
    assert counted_on() == 5


@pytest.mark.parametrize("name", ["card.json", "katz.npz", "draft.safetensors"])
def test_a_damaged_or_missing_file_is_refused(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:100])
    with pytest.raises(ValueError, match="is damaged"):
        load_ladder(folder=folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match="is missing; restore it with `git checkout data`"):
        load_ladder(folder=folder)


def test_runtimes_dtypes_and_targets_that_there_are_not_are_refused(folder, monkeypatch):
    for options, complaint in (
        ({"runtime": "fast", "dtype": "float64"}, "the fast runtime computes in float32"),
        ({"dtype": "int8"}, "float32, float64, bfloat16, got 'int8'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            load_ladder(folder=folder, **options)
    monkeypatch.setenv("SPECDEC_CACHE", str(folder / "elsewhere"))
    with pytest.raises(ValueError, match=r"the target is not prepared: .*`specdec setup`"):
        load_ladder(folder=folder)


def test_exported_drafts_are_whole_models(folder, tmp_path, monkeypatch):
    ladder = load_ladder(folder=folder, device="cpu")
    wanted = {name: scores(ladder, name) for name in LAYERS}
    monkeypatch.setattr(finishing, "load_ladder", lambda **_: ladder)
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
    with pytest.raises(ValueError, match=r"middle.safetensors is missing; .* train` makes it"):
        finishing.finish(folder.parent / "drafts", [1, 2], folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_drafts_of_online_training_bring_their_windows_and_one_that_reads_the_target(folder):
    drafts = folder.parent / "drafts"
    target = target_network()
    about = {"window": 5, "layers_read": [0, 1]}
    save_student(build_student(target, [0, 1]), drafts / "middle.safetensors", {"window": 40})
    part = ReadingDraft(build_student(target, [0]), about["layers_read"])
    torch.nn.init.normal_(part.from_target.weight, std=0.1)
    packed = pack_weights(dict(part.named_parameters()))
    (drafts / "reading.safetensors").write_bytes(save(packed, {"about": json.dumps(about)}))
    (drafts / "head.json").write_text(json.dumps(sorted(frequent_tokens())))
    run("distil", "finish", "--drafts", str(drafts), "--window", "9", "--out", str(folder))
    for runtime, edition in (("reference", None), ("fast", "exact"), ("int8", "int8")):
        ladder = load_ladder(folder=folder, device="cpu", runtime=runtime)
        assert [one.name for one in ladder.models] == ["target", "middle", "draft", "reading"]
        assert [one.window for one in ladder.models] == [None, 40, 9, 5]
        assert {getattr(one, "edition", None) for one in ladder.models} == {edition}
        assert ladder.reading.target is ladder.target
        sizes = {name: about["parameters"] for name, about in ladder.card["models"].items()}
        assert sizes["reading"] == sizes["draft"] + 3 * 64 * 64
        plain, found = (
            decode(ladder.target, guesser, PROMPT, Chance(1), max_new_tokens=32)
            for guesser in (NoDraft(), TreeDraft(ladder.reading, budget=6))
        )
        assert found.tokens == plain.tokens and len(found.rounds) < 32
    quick = with_int8_drafts(load_ladder(folder=folder, device="cpu", runtime="fast"))
    assert [one.window for one in quick.models] == [None, 40, 9, 5]
    assert [one.edition for one in quick.models] == ["exact", "int8", "int8", "int8"]


def test_a_window_of_no_token_is_refused_before_anything_is_written(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="a window has 1 token or more, got 0"):
        finishing.finish(folder.parent / "drafts", [1, 2], folder, window=0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.fixture(scope="module")
def texts(ladder, prompts) -> list[tuple[Chance, Context]]:
    """What the target writes on two prompts."""
    run = {"max_new_tokens": LENGTH, "stop_tokens": ladder.stop_tokens}
    found = []
    for prompt, seed in zip(prompts[:2], seeds(prompts[:2], 0), strict=True):
        chance, tokens = Chance(seed, T1), ladder.encode(prompt)
        found.append((chance, decode(ladder.target, NoDraft(), tokens, chance, **run).context))
    return found


@pytest.fixture(scope="module", autouse=True)
def short():
    """Short texts under two samplers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finishing, "LENGTH", LENGTH)
        patch.setattr(finishing, "SAMPLERS", (T1, Sampler(1.0, top_k=50)))
        yield


@pytest.fixture(scope="module")
def tables(ladder, prompts) -> list[dict]:
    return match_tables(ladder, prompts[:2])


def rates_by_kind(tables: list[dict]) -> dict[tuple[str, str, str], list[float]]:
    return {kind(one): one["rates"] for one in tables if one["top_k"] is None}


def test_every_pair_is_measured_at_every_position_of_the_targets_text(tables, texts):
    wanted = [(*each, k) for k in (None, 50) for each in KINDS]
    assert [(*kind(one), one["top_k"]) for one in tables] == wanted
    for one in tables:
        assert 0 < sum(one["rates"]) <= 1 and len(one["rates"]) == RANKS
        bins = (len(EDGES), len(EDGES) + 1) if one["siblings"] == "ranked" else (0, 0)
        assert (len(one["edges"]), len(one["binned"])) == bins
    positions = sum(len(text) - text.prompt_tokens for _, text in texts)
    assert {one["contexts"] for one in tables if one["top_k"] is None} == {positions}


def test_the_first_rate_is_how_often_the_drafts_own_choice_is_right(tables, ladder, texts):
    right = []
    for chance, text in texts:
        for position in range(text.prompt_tokens, len(text)):
            before = Context(text.tokens[:position], text.prompt_tokens)
            (logits,) = ladder.draft.score(before, TokenTree.rooted(before))
            right.append(chance.choose(logits, position) == text.tokens[position])
    first = rates_by_kind(tables)["draft", "target", "ranked"][0]
    assert first == pytest.approx(sum(right) / len(right), abs=1e-4)


def test_a_model_that_guesses_for_itself_is_always_right(ladder, prompts, tables):
    twins = {name: CachedModel(ladder.target.model, name) for name in ("middle", "draft")}
    same = match_tables(replace(ladder, **twins), prompts[:2])
    rates, others = rates_by_kind(same), rates_by_kind(tables)
    for each in [("middle", "target", "ranked"), ("draft", "middle", "ranked"), *KINDS[-2:]]:
        assert rates[each] == [1.0] + [0.0] * (RANKS - 1)
        assert others[each][0] < 1  # the control: another model is not
    assert {row[0] for one in same[:1] for row in one["binned"]} == {1.0}
    assert rates["n-gram", "target", "ranked"][0] < 1


def test_stored_tables_are_listed_in_the_card_and_found_again(folder, monkeypatch):
    monkeypatch.setattr(finishing, "LENGTH", 4)
    monkeypatch.setattr(finishing, "SAMPLERS", (T1,))
    monkeypatch.setattr(finishing, "every_domain", partial(load_prompts, "chat"))
    before = load_ladder(folder=folder, device="cpu")
    assert before.measured == ()
    run("distil", "matches", "--limit", "1", "--out", str(folder))
    after: Ladder = load_ladder(folder=folder, device="cpu")
    files = before.card["files"] | {MATCH: file_digest(folder / MATCH)}
    assert after.card == before.card | {"files": files}
    stored = json.loads((folder / MATCH).read_text())
    assert after.measured == tuple(map(Measured.of, stored)) and len(stored) == len(KINDS)
    assert after.match("draft", T1).name == "measured at T=1" and not list(folder.glob("*.partial"))
    (folder / MATCH).write_text((folder / MATCH).read_text().replace("0.", "0.1", 1))
    with pytest.raises(ValueError, match=r"match\.json is damaged"):
        load_ladder(folder=folder)
