"""Match tables: what is measured is what is accepted, and what is stored is listed, whole and found
again.
"""

import json
import shutil
from dataclasses import replace
from functools import partial

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA, file_digest
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.ladder import command, matching
from specdec_lib.suite.ladder.matching import EDGES, PAIRS, RANKS, measure, store
from specdec_lib.workload import MATCH, Ladder, Measured, load_ladder, seeds

T1 = Sampler(1.0)
LENGTH = 16


@pytest.fixture(scope="module")
def texts(ladder, prompts) -> list[tuple[Chance, Context]]:
    """What the target writes on two prompts."""
    chances = [Chance(seed, T1) for seed in seeds(prompts[:2], 0)]
    run = {"max_new_tokens": LENGTH, "stop_tokens": ladder.stop_tokens}
    written = [
        decode(ladder.target, NoDraft(), ladder.encode(prompt), chance, **run)
        for prompt, chance in zip(prompts[:2], chances, strict=True)
    ]
    return [(chance, made.context) for chance, made in zip(chances, written, strict=True)]


@pytest.fixture(scope="module")
def tables(ladder, prompts) -> list[dict]:
    return measure(
        ladder, prompts[:2], samplers=(T1, Sampler(1.0, top_k=50)), max_new_tokens=LENGTH
    )


def test_every_pair_is_measured_at_every_position_of_the_targets_text(tables, texts):
    kinds = [
        *((*pair, "ranked") for pair in PAIRS),
        ("draft", "target", "iid"),
        ("draft", "target", "distinct"),
    ]
    assert [(one["guesser"], one["obeyed"], one["siblings"], one["top_k"]) for one in tables] == [
        (*kind, k) for k in (None, 50) for kind in kinds
    ]
    assert {one["contexts"] for one in tables if one["top_k"] is None} == {
        sum(len(text) - text.prompt_tokens for _, text in texts)
    }


def test_what_is_measured_are_rates_of_a_table_that_loads(tables):
    for one in tables:
        assert 0 < sum(one["rates"]) <= 1 and len(one["rates"]) == RANKS
        assert (len(one["edges"]), len(one["binned"])) == (
            (len(EDGES), len(EDGES) + 1) if one["siblings"] == "ranked" else (0, 0)
        )
        assert Measured.of(json.loads(json.dumps(one))).table.rates == tuple(one["rates"])


def test_the_first_rate_is_the_share_of_positions_that_the_drafts_own_choice_gets_right(
    tables, ladder, texts
):
    right, seen = 0, 0
    for chance, text in texts:
        for position in range(text.prompt_tokens, len(text)):
            before = Context(text.tokens[:position], text.prompt_tokens)
            (logits,) = ladder.draft.score(before, TokenTree.rooted(before))
            right += chance.choose(logits, position) == text.tokens[position]
            seen += 1
    (found,) = [
        one
        for one in tables
        if (one["guesser"], one["obeyed"], one["siblings"], one["top_k"])
        == ("draft", "target", "ranked", None)
    ]
    assert found["rates"][0] == pytest.approx(right / seen, abs=1e-4)


def of_pairs(tables: list[dict]) -> dict[tuple[str, str, str], list[float]]:
    return {(one["guesser"], one["obeyed"], one["siblings"]): one["rates"] for one in tables}


def test_a_model_that_guesses_for_itself_is_always_right(ladder, prompts, tables):
    twins = {name: CachedModel(ladder.target.model, name) for name in ("middle", "draft")}
    same = measure(replace(ladder, **twins), prompts[:2], samplers=(T1,), max_new_tokens=LENGTH)
    rates = of_pairs(same)
    for kind in (
        ("middle", "target", "ranked"),
        ("draft", "middle", "ranked"),
        *(("draft", "target", siblings) for siblings in ("iid", "distinct")),
    ):
        assert rates[kind] == [1.0] + [0.0] * (RANKS - 1)
        assert of_pairs(tables)[kind][0] < 1  # the control: another model is not
    assert {row[0] for one in same if one["guesser"] == "middle" for row in one["binned"]} == {1.0}
    assert rates["n-gram", "target", "ranked"][0] < 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the ladder without its tables, and a short measurement."""
    monkeypatch.setattr(matching, "measure", partial(measure, samplers=(T1,), max_new_tokens=4))
    shutil.copytree(DATA / "prompts", tmp_path / "prompts")
    copied = tmp_path / "ladder"
    shutil.copytree(DATA / "ladder", copied)
    (copied / MATCH).unlink()
    card = json.loads((copied / "card.json").read_text())
    del card["files"][MATCH]
    (copied / "card.json").write_text(json.dumps(card))
    return copied


def test_stored_tables_are_listed_in_the_card_and_found_again(folder):
    before = load_ladder(folder=folder, device="cpu")
    assert before.measured == ()
    store(folder, prompts=1)
    after: Ladder = load_ladder(folder=folder, device="cpu")
    assert after.card["files"][MATCH] == file_digest(folder / MATCH)
    assert after.card == before.card | {
        "files": before.card["files"] | {MATCH: file_digest(folder / MATCH)}
    }
    assert (
        after.measured == tuple(map(Measured.of, json.loads((folder / MATCH).read_text())))
        and len(after.measured) == len(PAIRS) + 2
    )
    assert after.match("draft", T1).name == "measured at T=1" and not list(folder.glob("*.partial"))
    (folder / MATCH).write_text((folder / MATCH).read_text().replace("0.", "0.1", 1))
    with pytest.raises(ValueError, match=r"match\.json is damaged: its SHA-256 is not the card's"):
        load_ladder(folder=folder)


@pytest.mark.parametrize(
    "given,steps", [(["--match-only"], ["store", "show"]), ([], ["make", "store", "show"])]
)
def test_match_only_trains_nothing(given, steps, tmp_path, monkeypatch, capsys):
    done = []

    class Maker:
        def __init__(self, folder, cache, *, scale, device):
            assert (folder, cache) == (tmp_path, tmp_path / "cache")

        def make(self):
            done.append("make")

    monkeypatch.setattr(command, "Maker", Maker)
    monkeypatch.setattr(command, "store", lambda folder: done.append("store"))
    monkeypatch.setattr(command, "show", lambda folder: done.append("show"))
    monkeypatch.setattr(command, "page", lambda card: "the card")
    command.main(["--folder", str(tmp_path), "--cache", str(tmp_path / "cache"), *given])
    assert done == steps and capsys.readouterr().out == "the card\n"
