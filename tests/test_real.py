"""The default ladder itself: what is stored belongs together, and speculation along the prepared
target writes what the target alone writes.

These are the tests that need the target of `specdec setup`: about a minute. `make test` prepares
it; elsewhere they are skipped where it is missing.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from bugs import Elsewhere, believing
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.near_ties import BUG, ROUNDING, TWO_PROGRAMS, near_tie
from specdec_lib.measure.settings.table import table_drafts
from specdec_lib.measure.target_text import SAMPLERS, find_text, stored_texts
from specdec_lib.measure.text_writing import write_batched
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.prepared import PREPARED, prepared_folder
from specdec_lib.suite.distil import finishing
from specdec_lib.suite.distil.finishing import PAIRS
from specdec_lib.suite.distil.places import TEXT
from specdec_lib.suite.distil.shards import list_shards, read_shard
from specdec_lib.suite.distil.writing import plain
from specdec_lib.suite.hf import Speculative
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_ladder, load_prompts, seeds
from specdec_lib.workload.ladder import neutral

GOLDEN = json.loads((Path(__file__).parent / "target_tokens.json").read_text(encoding="utf-8"))
SHORT, LONGER, ANSWER = 24, 32, 256  # new tokens
GREEDY, WARM = Sampler(0), Sampler(1.0)
KINDS = {"chain": "draft, chain of 4", "tree": "draft, tree of 16", "staged": "staged, tree of 16"}
KINDS |= {"cascade": "cascade, middle + draft + Max-Gram"}  # of the README's table


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    """The default ladder on the fast runtime; an error where the target must be there."""
    prepared = (prepared_folder() / PREPARED).is_file()
    if not prepared and "SPECDEC_REQUIRE_TARGET" not in os.environ:
        pytest.skip("the target is not prepared: specdec setup")
    return load_ladder(device="cpu", runtime="fast")


@pytest.fixture(scope="module")
def prompt() -> Prompt:
    """A short question."""
    return load_prompts("chat", "development", 1)[0]


@dataclass(frozen=True)
class Asked:
    """A prompt's tokens and its chance, as in a sweep with seed 0."""

    ladder: Ladder
    tokens: tuple[int, ...]
    chance: Chance

    @classmethod
    def of(cls, ladder: Ladder, prompt: Prompt, sampler: Sampler) -> "Asked":
        """Of a stored prompt."""
        return cls(ladder, ladder.encode(prompt), Chance(seeds([prompt], 0)[0], sampler))

    def decode(self, draft: Draft, count: int = SHORT, **given: object) -> Generation:
        """What the target writes with this draft."""
        run = {"max_new_tokens": count, "stop_tokens": self.ladder.stop_tokens} | given
        return decode(self.ladder.target, draft, self.tokens, self.chance, **run)


@pytest.fixture(scope="module")
def written(ladder: Ladder, prompt: Prompt) -> dict[Sampler, tuple[Asked, tuple[int, ...]]]:
    """What plain decoding writes after the prompt, by sampler."""
    asked = {sampler: Asked.of(ladder, prompt, sampler) for sampler in (GREEDY, WARM)}
    return {sampler: (one, one.decode(NoDraft(), LONGER).tokens) for sampler, one in asked.items()}


def test_the_models_share_a_vocabulary_and_are_what_the_card_says(ladder):
    models = (ladder.target, ladder.middle, ladder.draft)
    assert {one.vocabulary for one in (*models, ladder.katz)} == {len(ladder.tokenizer)}
    for name in ("target", "middle", "draft"):
        layers = getattr(ladder, name).model.model.layers
        size = sum(weights.numel() for weights in layers.parameters())
        assert ladder.card["models"][name]["parameters"] == size
    assert len(ladder.target.model.model.layers) == 30 and ladder.stop_tokens
    assert ladder.target.runtime.startswith("fast: float32")


def test_every_pair_has_match_tables_of_its_own(ladder):
    kinds = {(*pair, "ranked") for pair in PAIRS}
    kinds |= {("draft", "target", siblings) for siblings in ("iid", "distinct")}
    kinds |= {("reading", "target", "ranked")}
    assert {(one.guesser, one.obeyed, one.siblings) for one in ladder.measured} == kinds
    assert len(ladder.measured) == len(kinds) * len(finishing.SAMPLERS)
    for one in ladder.measured:
        assert one.contexts > 5000 and bool(one.table.edges) == (one.siblings == "ranked")
    draft = ladder.match("draft", WARM)
    assert ladder.match("middle", WARM).rates[0] > draft.rates[0] and draft.name.endswith("T=1")
    assert draft.rate(0, 0.1) < draft.rate(0, 5.0) and draft.rate(1, 0.1) > draft.rate(1, 5.0)


def test_every_prompt_is_a_users_turn_and_leaves_room_for_an_answer(ladder):
    for domain in DOMAINS:
        for prompt in load_prompts(domain, "all"):
            tokens = ladder.encode(prompt)
            assert len(tokens) + ANSWER < ladder.max_positions
            text = ladder.tokenizer.decode(tokens)
            assert f"<|im_start|>user\n{prompt.text}<|im_end|>\n<|im_start|>assistant\n" in text


def test_no_prompt_is_a_request_that_the_drafts_learnt_from(ladder):
    """Of all shards; the control is that a request read off a shard is put in the same tokens."""
    learnt, same = set(), []
    for shard in list_shards(TEXT):
        for one in read_shard(shard):
            text = ladder.tokenizer.decode(one.ids[: one.start])
            request = text.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
            learnt.add(plain(request))
            if len(same) < 50:
                same.append(ladder.encode(request) == one.ids[: one.start])
    prompts = [one for domain in ("chat", "math") for one in load_prompts(domain, "all")]
    assert learnt.isdisjoint(plain(one.text) for one in prompts)
    assert len(learnt) > 1000 and sum(same) > 25


def test_tokens_are_those_of_llama_cpp(ladder):
    """`target_tokens.json` holds what llama.cpp (node-llama-cpp 3.22.1) makes of each text with the
    same GGUF file; the control is the tokenizer as transformers converts it.
    """
    tokenizer = Tokenizer.from_str(ladder.tokenizer.backend_tokenizer.to_str())
    assert [tokenizer.encode(one["text"]).ids for one in GOLDEN] == [one["ids"] for one in GOLDEN]
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    differ = [one["text"] for one in GOLDEN if tokenizer.encode(one["text"]).ids != one["ids"]]
    assert "    10" in differ and "x =\n    10 + 345" in differ


@pytest.mark.parametrize("sampler", [GREEDY, WARM], ids=["T=0", "T=1"])
@pytest.mark.parametrize("kind", KINDS)
def test_speculation_writes_the_targets_own_tokens_in_fewer_rounds(kind, sampler, written):
    asked, wanted = written[sampler]
    made = asked.decode(table_drafts(asked.ladder, sampler)[KINDS[kind]])
    assert made.tokens == wanted[:SHORT] and len(made.rounds) < SHORT - 2


def test_a_wrong_rule_and_a_wrong_chance_are_caught(written):
    """The controls: what a rule believes changes the text; a draft under a wrong chance changes the
    rounds alone, and a target under a wrong chance writes another text.
    """
    asked, wanted = written[WARM]
    draft = table_drafts(asked.ladder, WARM)[KINDS["chain"]]
    assert asked.decode(draft, rule=believing).tokens != wanted[:SHORT]
    right, wrong = asked.decode(draft), asked.decode(Elsewhere(draft))
    assert wrong.tokens == right.tokens and len(wrong.rounds) > len(right.rounds)
    other = replace(asked, chance=replace(asked.chance, seed=asked.chance.seed + 1))
    assert other.decode(draft).tokens != wanted[:SHORT]


def told_apart(asked: Asked, one: Sequence[int], other: Sequence[int]) -> str | None:
    """Why two texts of a target differ, None if they do not."""
    texts = (asked.ladder.target, asked.tokens, one, other)
    found = near_tie(*texts, asked.chance, floor=TWO_PROGRAMS)
    return found and found.verdict


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["T=0", "T=1", "top-k 50"])
def test_stored_texts_are_what_the_target_writes_up_to_rounding(ladder, prompt, sampler):
    stored = stored_texts([sampler])
    everything = [one for domain in DOMAINS for one in load_prompts(domain, "all")]
    lengths = [len(find_text(stored, one).tokens) for one in everything]
    assert {text.target for text in stored} == {ladder.card["target"]} and min(lengths) > 0
    assert {(text.seed, text.limit) for text in stored} == {(0, ANSWER)} and max(lengths) == ANSWER
    asked = Asked.of(ladder, prompt, sampler)
    plainly = asked.decode(NoDraft(), LONGER).tokens
    known = find_text(stored, prompt).tokens[:LONGER]
    assert told_apart(asked, plainly, known) in (None, ROUNDING)
    rarest = int(torch.tensor(plainly).max())  # the control: one token is another
    assert told_apart(asked, plainly, (*plainly[:9], rarest + 1, *plainly[10:])) == BUG


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["T=0", "T=1", "top-k 50"])
def test_the_writer_of_the_stored_texts_writes_them_again_up_to_near_ties(ladder, sampler):
    """Three short prompts; the test above has the control, a text with another token."""
    stored = stored_texts([sampler])
    everything = [one for domain in DOMAINS for one in load_prompts(domain, "all")]
    asked = sorted(everything, key=lambda one: len(one.text))[:3]
    made = write_batched(ladder, asked, sampler, max_new_tokens=SHORT)
    for one in asked:
        known = find_text(stored, one).tokens[:SHORT]
        again = find_text(made, one).tokens
        assert told_apart(Asked.of(ladder, one, sampler), again, known) in (None, ROUNDING)


def test_the_hugging_face_door_writes_what_generate_writes(ladder, prompt):
    network, tokens = ladder.target.model, ladder.encode(prompt)
    given = torch.tensor([tokens])
    options = {"attention_mask": torch.ones_like(given), "max_new_tokens": SHORT}
    options |= {"do_sample": False, "pad_token_id": ladder.stop_tokens[0]}
    rounds = []
    door = Speculative(table_drafts(ladder, GREEDY)[KINDS["tree"]], on_round=rounds.append)
    with neutral(ladder), torch.no_grad():
        wanted, made = (
            tuple(network.generate(given, **options, **more)[0, len(tokens) :].tolist())
            for more in ({}, {"custom_generate": door})
        )
    reference = replace(ladder, target=CachedModel(network, "target"))
    verdict = told_apart(Asked(reference, tokens, Chance(0)), made, wanted)
    assert verdict in (None, ROUNDING) and len(rounds) < SHORT - 2
