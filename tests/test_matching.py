"""Match tables: what is measured is what is accepted; what is stored is found again."""

import json
from dataclasses import replace
from functools import partial

import pytest
from tiny import finished_folder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import file_digest
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.distil import matching
from specdec_lib.suite.distil.matching import EDGES, KINDS, RANKS, main, measure
from specdec_lib.workload import MATCH, Ladder, Measured, load_ladder, load_prompts, seeds

T1 = Sampler(1.0)
LENGTH = 16


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
        patch.setattr(matching, "LENGTH", LENGTH)
        patch.setattr(matching, "SAMPLERS", (T1, Sampler(1.0, top_k=50)))
        yield


@pytest.fixture(scope="module")
def tables(ladder, prompts) -> list[dict]:
    return measure(ladder, prompts[:2])


def kind(table: dict) -> tuple:
    return table["guesser"], table["obeyed"], table["siblings"]


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
    same = measure(replace(ladder, **twins), prompts[:2])
    rates, others = rates_by_kind(same), rates_by_kind(tables)
    for each in [("middle", "target", "ranked"), ("draft", "middle", "ranked"), *KINDS[-2:]]:
        assert rates[each] == [1.0] + [0.0] * (RANKS - 1)
        assert others[each][0] < 1  # the control: another model is not
    assert {row[0] for one in same[:1] for row in one["binned"]} == {1.0}
    assert rates["n-gram", "target", "ranked"][0] < 1


def test_stored_tables_are_listed_in_the_card_and_found_again(tmp_path, monkeypatch):
    for name, value in {
        "LENGTH": 4,
        "SAMPLERS": (T1,),
        "every_domain": partial(load_prompts, "chat"),
    }.items():
        monkeypatch.setattr(matching, name, value)
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    folder = finished_folder(tmp_path)
    before = load_ladder(folder=folder, device="cpu")
    assert before.measured == ()
    main(["--limit", "1", "--out", str(folder)])
    after: Ladder = load_ladder(folder=folder, device="cpu")
    files = before.card["files"] | {MATCH: file_digest(folder / MATCH)}
    assert after.card == before.card | {"files": files}
    stored = json.loads((folder / MATCH).read_text())
    assert after.measured == tuple(map(Measured.of, stored)) and len(stored) == len(KINDS)
    assert after.match("draft", T1).name == "measured at T=1" and not list(folder.glob("*.partial"))
    (folder / MATCH).write_text((folder / MATCH).read_text().replace("0.", "0.1", 1))
    with pytest.raises(ValueError, match=r"match\.json is damaged"):
        load_ladder(folder=folder)
