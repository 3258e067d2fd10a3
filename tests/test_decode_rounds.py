"""What a round emits, that rounds stream, and what the loop finds in and refuses of its parts."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from fakes import table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode, models_in, rounds
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.models.table import TableModel

PROMPT, T1 = (1, 2, 0), Sampler(1.0)


@pytest.mark.parametrize(
    "length, proposed, emitted", [(20, [4, 4, 4, 4], [5, 5, 5, 5]), (7, [4, 1], [5, 2])]
)
def test_a_perfect_draft_emits_its_length_and_a_bonus_and_no_more_than_asked_for_is_verified(
    length, proposed, emitted
):
    chain = ChainDraft(table_model(5, 1, name="draft"), 4)
    found = decode(table_model(5, 1), chain, PROMPT, Chance(0, T1), max_new_tokens=length)
    assert [played.proposed for played in found.rounds] == proposed
    assert [len(played.emitted) for played in found.rounds] == emitted
    assert found.stop == "length" and found.tokens_per_round == length / len(emitted)


def test_a_stop_token_inside_the_path_and_the_length_limit_are_kept_exactly():
    target, chain = table_model(3, 7), ChainDraft(table_model(3, 7, name="draft"), 4)

    def run(length, stops=()):
        chance = Chance(3, T1)
        return decode(target, chain, PROMPT, chance, max_new_tokens=length, stop_tokens=stops)

    plain = run(8).tokens
    stopped = run(8, [plain[2]])
    assert stopped.tokens == plain[: plain.index(plain[2]) + 1] and stopped.stop == "stop token"
    for length in range(1, 8):
        assert run(length).tokens == plain[:length]


def test_rounds_stream_while_the_loop_runs():
    passes, target = [], table_model(5, 1)
    known = target.logits
    spied = TableModel(lambda tokens: passes.append(tokens) or known(tokens), 5, "table")
    limits, seen = {"max_new_tokens": 3}, []
    for played, stop in rounds(spied, NoDraft(), PROMPT, Chance(0), **limits):
        seen.append((len(played.emitted), stop, len(passes)))
    assert seen == [(1, None, 1), (1, None, 2), (1, "length", 3)]
    heard = []
    whole = decode(spied, NoDraft(), PROMPT, Chance(0), **limits, on_round=heard.append)
    assert heard == list(whole.rounds)


class Prepared(ChainDraft):
    """A dataclass that sets an attribute of its own beside its fields."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "helper", TableModel.fixed((0.5, 0.5, 0.0, 0.0), "helper"))


def test_models_beside_a_dataclasss_fields_are_found_and_one_used_twice_is_counted_once():
    assert set(models_in(Prepared(table_model(4, 0), 2))) == {"table", "helper"}
    model = table_model(5, 1)
    assert models_in(model, ChainDraft(model, 2)) == {"table": model}


@dataclass(frozen=True)
class Sized:
    vocabulary: int

    def propose(self, context, chance):
        raise AssertionError("refused before anything is proposed")


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3)])
def test_every_part_of_another_vocabulary_is_refused(sizes):
    draft = MergedDraft(tuple(map(Sized, sizes)))
    with pytest.raises(ValueError, match="Sized has 3 tokens, target 4"):
        decode(table_model(4, 0, name="target"), draft, (0,), Chance(0), max_new_tokens=1)


@pytest.mark.usefixtures("unchecked")
def test_a_target_that_lacks_members_is_refused_by_their_names():
    class Scorer:
        name, vocabulary, max_positions = "mine", 4, 16

        def score(self, context, tree):
            raise AssertionError("refused before anything is scored")

    with pytest.raises(ValueError, match=r"Scorer without forget, runtime, usage"):
        decode(Scorer(), NoDraft(), (0,), Chance(0), max_new_tokens=1)


@pytest.mark.usefixtures("unchecked")
def test_a_row_of_an_array_is_a_prompt():
    tokens = {
        decode(table_model(5, 1), NoDraft(), prompt, Chance(0), max_new_tokens=4).tokens
        for prompt in (PROMPT, torch.tensor(PROMPT), np.array(PROMPT))
    }
    assert len(tokens) == 1
