"""The share of right guesses: of a model that is the target, of one that is not, and by hand."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from test_reading_model import pair
from tiny import tiny_ladder

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure import guesses
from specdec_lib.measure.cluster import LadderRecipe
from specdec_lib.measure.guesses import guess_rows, logits_along, measure_guesses
from specdec_lib.measure.target_text import write_text
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.workload import Prompt
from tests.verbs import run

PROMPTS = [
    Prompt(f"chat-{number}", "a text " * (1 + 9 * number), "chat", "held-out", "test")
    for number in range(3)
]


@pytest.fixture
def measured(monkeypatch, tmp_path):
    ladder = tiny_ladder()
    twin = replace(ladder, middle=CachedModel(ladder.target.model, "middle"))
    monkeypatch.setattr(LadderRecipe, "load", lambda recipe: twin)
    monkeypatch.setattr(guesses, "WRITTEN", 12)
    monkeypatch.setattr(guesses, "LONG", len(ladder.encode(PROMPTS[1])))
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    return twin, measure_guesses(PROMPTS, LadderRecipe())


def test_the_targets_twin_is_always_right_and_a_draft_as_often_as_counted_by_hand(measured):
    ladder, table = measured
    assert set(table[table.model == "middle"].first_right) == {1.0}
    assert {*table.long} == {False, True} and {*table.sampling} == {"greedy", "T = 1"}
    assert {*table.domain} == {"all", "chat"} and table.tokens.sum() % 2 == 0
    right = tokens = 0
    for prompt in PROMPTS[:2]:
        given = ladder.encode(prompt)
        text = write_text(ladder, prompt, guesses.SAMPLERS[0], max_new_tokens=12).tokens
        for count in range(len(text)):
            here = Context.of(given).extended(text[:count])
            root = TokenTree.rooted(here)
            rows = [model.score(here, root)[0] for model in (ladder.target, ladder.draft)]
            right += int(rows[0].argmax() == rows[1].argmax())
        tokens += len(text)
    row = table[
        (table.domain == "all")
        & ~table.long
        & (table.sampling == "greedy")
        & (table.model == "draft")
    ].iloc[0]
    assert (row.tokens, row.texts) == (tokens, 2)
    assert row.first_right == pytest.approx(right / tokens, abs=1e-4)
    assert row.first_right <= row.best_4_right <= 1


def test_a_draft_that_reads_has_the_logits_of_every_round_after_its_target(measured):
    _, draft = pair("fast")
    context = Context.of([*range(9)])
    written = (3, 1, 4, 1, 5)
    found = logits_along(draft, context, written)
    for count, row in enumerate(found):
        here = Context.of([*range(9), *written[:count]])
        draft.forget()
        assert torch.equal(row, draft.score(here, TokenTree.rooted(here))[0])
    as_guesses = draft.score(context, TokenTree.of_paths(context, [written[:-1]]))
    assert torch.equal(found[0], as_guesses[0]) and not torch.allclose(found[1:], as_guesses[1:])


def test_another_ladder_is_none_of_the_stored_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(guesses, "PLACE", tmp_path / "stored.csv")
    table = pd.DataFrame({"domain": ["all"], "first_right": [0.5]})
    monkeypatch.setattr(guesses, "measure_guesses", lambda *given: table)
    run("measure", "guesses", "--limit", "1", "--ladder", str(tmp_path))
    assert not (tmp_path / "stored.csv").exists()
    run(
        "measure",
        "guesses",
        "--limit",
        "1",
        "--ladder",
        str(tmp_path),
        "--csv",
        f"{tmp_path}/a.csv",
    )
    assert (tmp_path / "a.csv").exists() and not (tmp_path / "stored.csv").exists()
    run("measure", "guesses", "--limit", "1")
    assert (tmp_path / "stored.csv").exists()


def test_a_prompts_rows_are_one_per_text_and_draft(measured):
    ladder, _ = measured
    text = write_text(ladder, PROMPTS[0], guesses.SAMPLERS[1], max_new_tokens=12)
    rows = guess_rows(ladder, (PROMPTS[0], [text]))
    assert [(row["model"], row["sampling"]) for row in rows] == [
        ("middle", "T = 1"),
        ("draft", "T = 1"),
    ]
