"""Drafts that learn from what was decoded before: what they keep, and that outputs stay."""

import pickle
import random

import numpy as np
import pandas as pd
import pytest
import torch
from cases import LEARNING
from fakes import HERE, PROMPT, assert_best, fixed_model, table_model
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.decode.parts import learners_in
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts import earlier as remembering
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.earlier import EarlierAnswers
from specdec_lib.drafts.recycling import KEPT, Successors, TokenRecycling
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import learning, target_text
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.latency.time_breakdown import round_parts
from specdec_lib.measure.recorded_target import RecordedTarget, replay_draft
from specdec_lib.measure.settings.setting import Setting, check_settings
from tests import verbs


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0)], ids=str)
def test_what_is_learnt_saves_rounds(sampler):
    target = fixed_model((0.9, 0.05, 0.05), "target")
    plain = decode(target, TokenRecycling(3, 2), PROMPT, Chance(1, sampler), max_new_tokens=40)
    assert len(plain.rounds) < 40
    given = table_model(6, 1), EarlierAnswers(8, 2), PROMPT, Chance(1, sampler)
    first, again = (decode(*given, max_new_tokens=40) for _ in range(2))
    assert first.tokens == again.tokens
    assert len(again.rounds) < len(first.rounds) == 40


def test_successors_are_the_likeliest_tokens_and_their_log_probabilities():
    logits = torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    kept = Successors()
    assert kept.after(4) == ([], [])
    kept.keep((4, 7, 4), logits)
    wanted = logits.log_softmax(-1).sort(descending=True)
    for token, node in ((4, 2), (7, 1)):  # the later of equal tokens
        tokens, log_probs = kept.after(token)
        assert tokens == wanted.indices[node, :KEPT].tolist()
        assert np.allclose(log_probs, wanted.values[node, :KEPT])
    assert kept.after(5) == pickle.loads(pickle.dumps(kept)).after(4) == ([], [])
    kept.keep((8,), torch.zeros(1, 9))  # a table of another vocabulary is begun anew
    assert kept.after(4) == ([], []) and len(kept.after(8)[0]) == KEPT


def test_greedy_trees_hold_the_best_products_and_sampled_children_follow_the_noise():
    draft, sampled = TokenRecycling(6, 3), Chance(3, Sampler(1.0))
    rows = torch.randn(5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    tree = TokenTree.rooted(HERE).grown(range(1, 5), [0] * 4, source="", scores=[1.0] * 4)
    draft.learn(HERE, tree, rows)
    found = draft.propose(HERE, chance := Chance(0, Sampler(0)))
    assert_best(found, lambda path: rows[(0, *path)[-1]], chance, budget=6, depth=3, rel=1e-5)
    draft = TokenRecycling(4, 1)
    draft.learn(HERE, TokenTree(0, (0,)), rows[:1])
    wanted, _ = sampled.rank(rows[0], len(HERE), 4)
    assert list(draft.propose(HERE, sampled).tokens[1:]) == wanted


def test_a_learner_is_found_wherever_it_stands_and_learns_once_a_round():
    heard = []

    class Listener(TokenRecycling):
        def learn(self, context, tree, target_logits):
            heard.append((len(tree), len(target_logits)))

    listener, model = Listener(), table_model(3, 2, name="draft")
    tree = TreeDraft(model, budget=2, depth=2)
    draft = MergedDraft((listener, StagedTree(tree, listener, guided=1)))
    assert learners_in(draft) == (listener,)
    made = decode(table_model(3, 1), draft, PROMPT, Chance(0), max_new_tokens=5)
    assert heard == [(len(played.tree),) * 2 for played in made.rounds]


def copied(answers, text, least, length):
    """What should be copied, found by looking at every place."""
    for size in range(min(remembering.WINDOW, len(text)), least - 1, -1):
        ending = text[-size:]
        for answer in answers:
            for start in range(len(answer) - size + 1):
                if answer[start : start + size] == ending:
                    return answer[start + size : start + size + length]
    return ()


def answered(draft, prompt, answer):
    draft.memory.follow(Context.of((prompt,)).extended(tuple(answer)))


@pytest.mark.parametrize("seed", range(20))
def test_copies_follow_the_first_of_the_longest_matches_in_earlier_answers(seed):
    dice = random.Random(seed)
    answers = [tuple(dice.choices(range(3), k=dice.randint(1, 30))) for _ in range(4)]
    draft = EarlierAnswers(4, 2)
    for number, answer in enumerate(answers):
        answered(draft, number + 3, ())
        answered(draft, number + 3, answer)
    here = Context.of((9,)).extended(tuple(dice.choices(range(3), k=12)))
    found = draft.propose(here, Chance(0))
    assert found.tokens[1:] == copied(answers, here.tokens, 2, 4)
    assert found.parents == tuple(range(-1, len(found) - 1))


def test_the_oldest_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(remembering, "MOST_TOKENS", 13)
    draft = EarlierAnswers(2, 2)
    for number in range(5):
        answered(draft, 50 + number, range(number * 6, number * 6 + 6))
    asked = (Context.of((60 + number, number * 6, number * 6 + 1)) for number in range(5))
    assert [draft.propose(one, Chance(0)).guesses for one in asked] == [0, 0, 0, 2, 2]
    assert pickle.loads(pickle.dumps(draft)).propose(HERE, Chance(0)).guesses == 0


def test_two_texts_in_turn_and_a_step_back_keep_one_copy_of_each_answer():
    draft, answers = EarlierAnswers(3, 2), (range(10, 50), range(60, 99))
    for length in (*range(1, 40), 30, 39):  # the last but one: a guess that was not accepted
        for prompt, answer in enumerate(answers):
            answered(draft, prompt, answer[:length])
    assert draft.propose(Context.of((5, 30, 31)), Chance(0)).tokens[1:] == (32, 33, 34)
    assert draft.propose(Context.of((0,)).extended((30, 31)), Chance(0)).guesses == 0
    answered(draft, 0, ())
    texts = [list(map(ord, one)) for one in draft.memory._answers.values()]
    assert texts == [list(answers[1]), list(answers[0][:39]), []]


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_a_learning_draft_is_refused_where_rounds_must_be_independent(make):
    target, draft = table_model(3, 1), make()
    text = RecordedTarget.of(target, HERE, (1, 2, 0), 3)
    for name, run in {
        "replay": lambda: replay_draft(text, draft, Chance(0, Sampler(0))),
        "a sweep": lambda: check_settings([Setting("one", draft)]),
        "a ledger": lambda: round_parts(target, {"one": draft}, [PROMPT], [Chance(0)]),
    }.items():
        with pytest.raises(ValueError, match=f"{name} takes no draft that learns"):
            run()


def test_the_race_of_learning_drafts_has_a_row_per_prompt_draft_and_domain(tmp_path, monkeypatch):
    ladder = tiny_ladder(runtime="fast")
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    changed = {"load_ladder": lambda **_: ladder, "with_int8_drafts": lambda one: one, "TOKENS": 4}
    changed |= {"SAMPLERS": (Sampler(0),)}
    monkeypatch.setattr(target_text, "DOMAINS", ("chat", "math"))
    for name, value in changed.items():
        monkeypatch.setattr(learning, name, value)
    place = tmp_path / "learning.csv"
    verbs.run("measure", "learning", "--limit", "1", "--busy", "--csv", str(place))
    found = pd.read_csv(place)
    assert set(found.state) == {decoding()} and found.cores.notna().all()
    assert list(found.columns) == learning.COLUMNS
    assert len(found) == 2 * len(learning.learning_settings(ladder, Sampler(0)))
    sums = learning.summarise_learning(found)
    assert (sums[sums.draft == "autoregressive"].speed_up == 1).all()
