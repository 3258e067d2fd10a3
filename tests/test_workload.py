"""Prompts and the ladder: what is loaded, and what is refused."""

import gzip
import json
import shutil
from dataclasses import replace
from itertools import product

import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA
from specdec_lib.core.tree import MatchTable
from specdec_lib.models.loading import load_model
from specdec_lib.suite.ladder.prompting import trained_questions
from specdec_lib.workload import SPLITS, Ladder, Measured, load_ladder, load_prompts, seeds

SMALL = ("card.json", "tokenizer.json", "katz.npz", "match.json", "draft")


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    """The embedded ladder."""
    return load_ladder(device="cpu")


@pytest.mark.parametrize("domain,count", [("code", 120), ("math", 80), ("prose", 80)])
def test_the_prompt_sets_are_whole_and_split_by_file(domain, count):
    sets = [load_prompts(domain, split) for split in SPLITS]
    for prompts in sets:
        assert len(prompts) == count == len({prompt.name for prompt in prompts})
    if domain != "math":
        development, held_out = ({prompt.origin for prompt in prompts} for prompts in sets)
        assert development.isdisjoint(held_out)
    assert len({prompt.text for prompts in sets for prompt in prompts}) > 1.9 * count


def test_no_prompt_comes_from_a_file_that_was_trained_on(ladder):
    data = ladder.card["data"]
    for split, files in (("held-out", "held_out_files"), ("development", "development_files")):
        for domain in ("code", "prose"):
            assert {prompt.origin for prompt in load_prompts(domain, split)} <= set(data[files])


def test_no_word_problem_was_trained_on():
    trained = trained_questions()
    known = {prompt.text for split in SPLITS for prompt in load_prompts("math", split)}
    assert trained.isdisjoint(known)
    assert len(trained) > 3 * 14_000  # the mix of the corpus holds 14,192


def test_every_prompt_leaves_room_to_generate(ladder):
    for domain, split in product(("code", "math", "prose"), SPLITS):
        longest = max(len(ladder.encode(prompt)) for prompt in load_prompts(domain, split))
        assert longest + 128 < ladder.target.max_positions


def test_the_ladders_models_share_a_vocabulary_and_shrink(ladder):
    models = [ladder.target, ladder.middle, ladder.draft]
    assert {model.vocabulary for model in (*models, ladder.katz)} == {len(ladder.tokenizer)}
    sizes = [sum(weight.numel() for weight in model.model.parameters()) for model in models]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 10e6
    assert ladder.card["models"]["target"]["held_out_bits_per_byte"] < 1.3
    assert len(ladder.card["samples"]) == 3 and "greedy" in ladder.card["repetition"]


def test_text_comes_back_as_it_was(ladder):
    text = "def f(x):\n    return x  # ∑ ok\n"
    assert ladder.tokenizer.decode(ladder.encode(text)) == text
    assert "".join(map(ladder.text, ladder.encode(prompt := "def f(x):\n    return  1"))) == prompt


def test_seeds_follow_from_the_prompts_name():
    prompts = load_prompts("code")
    assert (
        len(set(seeds(prompts, 0))) == len(prompts)
        and seeds(prompts[3:5], 0) == seeds(prompts, 0)[3:5]
    )
    assert seeds(prompts, 1) != seeds(prompts, 0)


def test_a_missing_or_damaged_prompt_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no file .*code\.jsonl\); restore it"):
        load_prompts("code", folder=tmp_path)
    (tmp_path / "code.jsonl").write_text('{"name": "x"')
    with pytest.raises(ValueError, match=r"code\.jsonl is damaged"):
        load_prompts("code", folder=tmp_path)


def test_the_ladder_brings_its_match_tables(ladder):
    kinds = {(one.guesser, one.obeyed, one.siblings) for one in ladder.measured}
    assert {("draft", "target", kind) for kind in ("ranked", "iid", "distinct")} | {
        ("n-gram", "draft", "ranked")
    } <= kinds
    assert all(
        one.contexts > 5000 and bool(one.table.edges) == (one.siblings == "ranked")
        for one in ladder.measured
    )
    table = ladder.match("draft", Sampler(1.0, top_k=50))
    assert table.name == "measured at T=1, top-k 50" and table.rates[0] > 0.5 > table.rates[1]
    assert table.rate(0, 0.1) < table.rate(0, 5.0) and table.rate(1, 0.1) > table.rate(1, 5.0)


@pytest.fixture
def measured(ladder):
    """The ladder with tables that differ in their first rate alone."""

    def entry(rate, temperature, top_k=None, siblings="ranked"):
        sampler, table = Sampler(temperature, top_k=top_k), MatchTable((rate,), str(rate))
        return Measured("draft", "target", siblings, sampler, 9, table)

    warm = (entry(0.2, 1.0), entry(0.3, 1.0, 50), entry(0.5, 1.0, siblings="iid"))
    return replace(ladder, measured=(entry(0.1, 0.4), *warm, entry(0.4, 1.3)))


@pytest.mark.parametrize(
    "sampler,rate",
    [
        (Sampler(1.0), 0.2),
        (Sampler(1.0, top_k=50), 0.3),
        (Sampler(1.3), 0.4),
        (Sampler(0), 0.1),
        (Sampler(0.9), 0.2),
        (Sampler(0.9, top_k=50), 0.3),
        (Sampler(5.0, top_k=50), 0.4),
        (Sampler(1.0, top_k=7), 0.2),
        (Sampler(1.0, top_p=0.9), 0.2),
    ],
)
def test_the_match_table_is_that_of_the_sampler_or_of_the_nearest_temperature(
    measured, sampler, rate
):
    assert measured.match("draft", sampler).rates == (rate,)


def test_the_match_table_is_that_of_the_models_and_siblings(measured):
    assert measured.match("draft", Sampler(1.3), siblings="iid").rates == (0.5,)
    for unknown in (
        {"guesser": "middle"},
        {"guesser": "draft", "obeyed": "middle"},
        {"guesser": "draft", "siblings": "top"},
    ):
        with pytest.raises(
            ValueError,
            match=r"was measured; there are: draft for target, iid; draft for target, ranked$",
        ):
            measured.match(sampler=Sampler(1.0), **unknown)
    with pytest.raises(
        ValueError,
        match="no match table of draft for target, ranked, was measured; there are: none",
    ):
        replace(measured, measured=()).match("draft", Sampler(1.0))


def test_a_stored_table_comes_back_under_a_name_that_says_its_sampler():
    stored = {"guesser": "n-gram", "obeyed": "draft", "siblings": "ranked", "contexts": 5}
    stored |= {"temperature": 0.7, "top_k": None, "rates": [0.5, 0.1], "edges": [1.0]}
    one = Measured.of(stored | {"binned": [[0.3, 0.2], [0.9, 0.0]]})
    binned = ((0.3, 0.2), (0.9, 0.0))
    assert one.table == MatchTable((0.5, 0.1), "measured at T=0.7", (1.0,), binned)
    assert one.sampler == Sampler(0.7)
    with pytest.raises(ValueError, match="one bin more than edges"):
        Measured.of(stored | {"edges": [1.0, 2.0], "binned": [[0.3], [0.9]]})


@pytest.fixture
def copy(tmp_path):
    """The ladder without its big models, and a card that lists what is there."""
    for name in SMALL:
        (shutil.copytree if (DATA / "ladder" / name).is_dir() else shutil.copy)(
            DATA / "ladder" / name, tmp_path / name
        )
    card = json.loads((tmp_path / "card.json").read_text())
    card["files"] = {
        name: digest for name, digest in card["files"].items() if (tmp_path / name).exists()
    }
    (tmp_path / "card.json").write_text(json.dumps(card))
    return tmp_path


FILES = ("card.json", "tokenizer.json", "katz.npz", "match.json", "draft/model.safetensors")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_or_missing_ladder_file_is_refused(copy, name):
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        load_ladder(folder=copy)
    (copy / name).unlink()
    with pytest.raises(ValueError, match="is missing; restore it with `git checkout data`"):
        load_ladder(folder=copy)


def test_a_model_folder_that_is_none_or_damaged_is_refused(copy):
    weights = copy / "draft" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    for folder in (copy, copy / "draft"):
        with pytest.raises(ValueError, match="cannot be read as a model"):
            load_model(folder, "draft", device="cpu")
    with pytest.raises(ValueError, match="float32, float64, bfloat16"):
        load_model(DATA / "ladder" / "draft", "draft", dtype="int8")


@pytest.mark.parametrize("place,damage", [(12, b"\xff\xff\xff"), (-6, b"\x00"), (0, b"x")])
def test_a_damaged_packed_file_is_named(tmp_path, place, damage):
    packed = bytearray(gzip.compress(b'{"text": "def f(x):", "name": "f"}\n'))
    packed[place : place + len(damage)] = damage
    (tmp_path / "x.jsonl.gz").write_bytes(packed)
    with pytest.raises(ValueError, match=r"x\.jsonl\.gz cannot be read \("):
        load_prompts(tmp_path / "x.jsonl.gz", "all")
