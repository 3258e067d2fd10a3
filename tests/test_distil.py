"""Every token that is written is the model's own choice, and a student learns the target's
distributions.
"""

import math
from itertools import islice
from pathlib import Path

import pytest
import torch
from decoders import DECODERS, WORDS, decoder
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from specdec_lib.models import batched
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.models.cached.probing import difference
from specdec_lib.models.students import assemble, build_student, own_weights, save_student
from specdec_lib.suite.distil import lessons as teaching
from specdec_lib.suite.distil import requests, training, writing
from specdec_lib.suite.distil.lessons import Lesson, frequent_tokens, read_lessons, teach
from specdec_lib.suite.distil.shards import Conversation
from specdec_lib.suite.distil.training import TrainingPlan, divergence, judge, train_student

TEMPLATE = (
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
HEAD = list(range(0, 60, 2))


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {piece: at for at, piece in enumerate(sorted(ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    found = PreTrainedTokenizerFast(tokenizer_object=made, chat_template=TEMPLATE)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    found.add_special_tokens({"additional_special_tokens": special})
    return found


def network(vocabulary: int = 60) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    config = LlamaConfig(vocab_size=vocabulary, initializer_range=0.3, **sizes, **heads)
    return LlamaForCausalLM(config).eval()


def texts(count: int = 24) -> list[Conversation]:
    made = torch.Generator().manual_seed(1)

    def one(number: int) -> Conversation:
        ids = torch.randint(60, (8 + number % 5,), generator=made).tolist()
        return Conversation(
            tuple(ids), ((3, len(ids)),), number % 2 == 0, True, "chat" if number % 3 else "code"
        )

    return [one(number) for number in range(count)]


def after_passes(model: LlamaForCausalLM, texts: list[list[int]]) -> torch.Tensor:
    """Logits after the last token of each text, read in passes; shorter ones begin later."""
    longest, fed = max(map(len, texts)), [0] * len(texts)
    passes = BatchedPasses(model, len(texts), longest + 1, dtype=torch.bfloat16)
    for step in range(longest):
        tokens = [one[at] for one, at in zip(texts, fed, strict=True)]
        logits = passes.logits(torch.tensor(tokens), torch.tensor(fed))
        begun = [step >= longest - len(one) for one in texts]
        fed = [min(at + new, len(one) - 1) for at, new, one in zip(fed, begun, texts, strict=True)]
    return logits.float()


def test_the_batched_passes_give_hugging_faces_logits():
    """Within the rounding of bfloat16; texts whose last two tokens are swapped are far outside."""
    model = network()
    random = torch.Generator().manual_seed(1)
    texts = [torch.randint(60, (size,), generator=random).tolist() for size in (17, 5, 11)]
    swapped = [[*one[:-2], one[-1], one[-2]] for one in texts]
    with torch.no_grad():
        wanted = torch.stack([model(torch.tensor([one])).logits[0, -1] for one in texts])
    found = (after_passes(model, some) for some in (texts, swapped))
    near, far = ((one - wanted).abs().amax(dim=1) / wanted.std() for one in found)
    assert near.max() < 0.15 and far.min() > 1


def test_texts_read_in_one_pass_are_those_read_token_by_token():
    """Also behind what a sequence has read before, and beside one that waits."""
    model = network()
    random = torch.Generator().manual_seed(2)
    texts = [torch.randint(60, (size,), generator=random).tolist() for size in (9, 4, 6)]
    more = [torch.randint(60, (size,), generator=random).tolist() for size in (2, 5, 1)]
    passes = BatchedPasses(model, 3, 20, dtype=torch.float32)
    first = passes.read([2, 0, 1], texts, [0, 0, 0])
    passes.logits(torch.tensor([7, 8, 9]), torch.tensor([4, 6, 9]))  # written over by the next
    second = passes.read([2, 0, 1], more, [9, 4, 6])
    with torch.no_grad():
        for place, (text, later) in enumerate(zip(texts, more, strict=True)):
            wanted = model(torch.tensor([text + later])).logits[0]
            assert torch.allclose(first[place], wanted[len(text) - 1], atol=1e-4)
            assert torch.allclose(second[place], wanted[-1], atol=1e-4)
            assert not torch.allclose(second[place], wanted[-2], atol=1e-1)


@pytest.mark.parametrize("kind", [one for one in DECODERS if not one.startswith("gpt2")])
def test_batched_passes_of_every_family_give_its_own_logits(kind, unchecked):
    """Of texts that are longer than a window, read in one pass and on token by token."""
    model = decoder(kind)
    random = torch.Generator().manual_seed(3)
    texts = [torch.randint(WORDS, (size,), generator=random).tolist() for size in (70, 9, 55)]
    passes = BatchedPasses(model, 3, 80, dtype=torch.float32)
    found = passes.read([1, 0, 2], [one[:-1] for one in texts], [0, 0, 0])
    order = [1, 0, 2]
    last = torch.tensor([texts[row][-1] for row in order])
    after = passes.logits(last, torch.tensor([len(texts[row]) - 1 for row in order]))
    with torch.no_grad():
        for row, text in enumerate(texts):
            wanted = model(torch.tensor([text]), use_cache=False).logits[0]
            assert difference(found[row : row + 1], wanted[-2:-1]) < 1e-4
            assert difference(after[order.index(row)][None], wanted[-1:]) < 1e-4
            assert difference(found[row : row + 1], wanted[-1:]) > 0.1


@pytest.mark.parametrize("kind", [one for one in DECODERS if not one.startswith("gpt2")])
def test_a_student_of_all_layers_is_its_target_whatever_the_family(kind, unchecked):
    target = decoder(kind)
    whole, other = (build_student(target, layers) for layers in ((0, 1, 2), (0, 2)))
    ids = torch.randint(WORDS, (1, 60), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        wanted, same, fewer = (
            one(ids, use_cache=False).logits[0] for one in (target, whole, other)
        )
    assert torch.equal(same, wanted) and difference(fewer, wanted) > 0.1


def test_another_kind_of_model_has_no_students(unchecked):
    with pytest.raises(ValueError, match=r"drafts are made of layers of llama, .*, got 'gpt2'"):
        build_student(decoder("gpt2"), [0])


def test_frequencies_of_the_rotation_are_not_rounded():
    """In bfloat16 a key at position 250 would be turned by half a radian."""
    body = BatchedPasses(network(), 1, 4, dtype=torch.bfloat16).body
    assert body.embed_tokens.weight.dtype == torch.bfloat16
    assert body.rotary_emb.inv_freq.dtype == torch.float32


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few short conversations, small files and steps; float32, whose digits are compared here."""
    for module in (batched, teaching, training):
        monkeypatch.setattr(module, "fastest_dtype", lambda *device: torch.float32)
    monkeypatch.setattr(teaching, "LESSONS_PER_FILE", 10)
    monkeypatch.setattr(training, "BATCH_TOKENS", 60)
    monkeypatch.setattr(requests, "ADDED", dict.fromkeys(requests.ADDED, 6))
    monkeypatch.setattr(writing, "ANSWER_TOKENS", 20)
    monkeypatch.setattr(writing, "ARTICLE_TOKENS", 20)


OWN_KINDS = ("chat", "code", "summary", "math", "question", "dialogue", "rewriting")


def write(model: LlamaForCausalLM, count: int, seed: int = 3) -> list[Conversation]:
    asked = requests.Requests([], dict.fromkeys(OWN_KINDS, 1.0), [], seed)
    writer = writing.Writer(model, tokenizer(), asked, sequences=4, positions=400)
    return list(islice(writer.write(), count))


def test_greedy_answers_are_the_likeliest_tokens_and_drawn_ones_are_not():
    model = network(259)
    lags = {True: 0.0, False: 0.0}  # by greedy: how far a chosen logit is below the best, at most
    for one in write(model, 24):
        with torch.no_grad():
            logits = model(torch.tensor([one.ids])).logits[0]
        for first, end in one.answers:
            rows = logits[first - 1 : end - 1]
            chosen = rows.gather(1, torch.tensor(one.ids[first:end])[:, None])[:, 0]
            lag = float((rows.max(dim=-1).values - chosen).max()) / float(rows.std())
            lags[one.greedy] = max(lags[one.greedy], lag)
    assert lags[True] < 0.3 < 1 < lags[False]


def test_a_conversation_that_ends_is_replaced_and_each_has_its_template():
    reader = tokenizer()
    found = write(network(259), 24)
    assert len(found) == 24 > 4 and {one.greedy for one in found} == {True, False}
    for one in found:
        assert reader.decode(one.ids[: one.start]).startswith("<|im_start|>user\n")
        for first, end in one.answers:
            asked = reader.decode(one.ids[:first])
            assert asked.endswith("<|im_end|>\n<|im_start|>assistant\n")
            assert 1 <= end - first <= 20
        assert one.kind in OWN_KINDS and len(one.ids) == one.answers[-1][1]
        assert len(one.answers) == 1 or one.kind == "dialogue"
        assert one.done == (one.ids[-1] == reader.convert_tokens_to_ids("<|im_end|>"))
    assert max(len(one.answers) for one in found) > 1
    assert write(network(259), 6) == found[:6] != write(network(259), 6, seed=4)


def test_articles_that_are_whole_are_passages_of_later_runs():
    reader = tokenizer()
    asked = reader("<|im_start|>user\nWrite.<|im_end|>\n").input_ids
    text = reader("A. B.").input_ids
    ids = (*asked, *text, reader.convert_tokens_to_ids("<|im_end|>"))
    whole = Conversation(ids, ((len(asked), len(ids)),), True, True, "article")
    others = [whole._replace(done=False), whole._replace(kind="chat")]
    assert writing.own_articles([whole, *others], reader) == ["A. B."]


@pytest.fixture
def taught(tmp_path: Path) -> list[Lesson]:
    (tmp_path / "lessons").mkdir()
    teach(texts(), HEAD, tmp_path / "lessons", target=network())
    return read_lessons(texts(), HEAD, tmp_path / "lessons")


def test_lessons_are_the_targets_distribution_within_the_head(taught):
    for lesson in taught[::5]:
        one, places = lesson.conversation, lesson.places.int().long()
        logits = network()(torch.tensor([one.ids])).logits[0, one.start - 1 : -1, HEAD]
        wanted = logits.log_softmax(-1)
        found = torch.full_like(wanted, math.nan).scatter(1, places, lesson.log_probs.float())
        torch.testing.assert_close(found, wanted, atol=2e-2, rtol=0)


def test_lessons_are_kept_and_those_of_other_texts_or_another_head_refused(taught, tmp_path):
    files = sorted((tmp_path / "lessons").iterdir())
    before = [path.stat().st_mtime_ns for path in files]
    files[1].unlink()
    for conversations, head in ((texts(), HEAD), ([*texts()[1:], texts()[0]], HEAD[:-1])):
        with pytest.raises(ValueError, match="no lessons of this text and head"):
            read_lessons(conversations, head, tmp_path / "lessons")
    teach(texts(), HEAD, tmp_path / "lessons", target=network())
    after = [path.stat().st_mtime_ns for path in files]
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, False, True]


def test_frequent_tokens_are_counted_in_answers_only():
    told = [Conversation((9, 9, 9, 4, 4, 5), ((3, 6),), True, True, "chat")]
    assert frequent_tokens(told, 2, 5) == [4, 5]
    assert frequent_tokens(told, 2, 7) == [4, 7]


def test_a_student_of_all_layers_is_the_target(taught):
    """No divergence from itself, and some from a student without the middle layer."""
    rows = network().lm_head.weight.detach()[HEAD]
    whole, other = (build_student(network(), layers) for layers in ((0, 1, 2), (0, 2)))
    same, apart = (training.mean_divergence(one, taught[:6], rows) for one in (whole, other))
    assert same.abs() < 1e-2 < 0.1 < apart
    table = judge(whole, taught, HEAD)
    assert (table["first"] > 0.97).all() and (judge(other, taught, HEAD)["first"] < 0.9).all()
    assert (table.loc["all"].tokens == table.loc["chat"].tokens + table.loc["code"].tokens).all()


def test_the_divergence_is_the_one_written_out():
    random = torch.Generator().manual_seed(2)
    rows = network().lm_head.weight.detach()[HEAD].double()
    given = torch.randn(20, 32, dtype=torch.float64, generator=random)
    best = (torch.randn(20, len(HEAD), generator=random) * 2).softmax(-1).topk(8)
    rest = 1 - best.values.sum(dim=1)
    guessed = (given @ rows.T).log_softmax(-1)
    among, beyond = (guessed.gather(1, best.indices), torch.ones_like(guessed))
    beyond = (guessed.exp() * beyond.scatter(1, best.indices, 0)).sum(1).log()
    apart = (best.values * (best.values.log() - among)).sum(1) + rest * (rest.log() - beyond)
    found = divergence(given, rows, best.indices, best.values)
    torch.testing.assert_close(found, apart.float(), atol=1e-4, rtol=1e-4)


def test_training_interrupted_ends_as_if_it_had_not(taught, tmp_path, monkeypatch):
    plan, begin = TrainingPlan([0], 600, 3e-3), build_student(network(), (0,))
    whole = build_student(network(), (0,))
    train_student(whole, taught, HEAD, plan, tmp_path / "whole")
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0)
    steps = list(training.schedule(taught, plan.answer_tokens))
    broken = [*steps[:7], [], *steps[8:]]  # there is nothing to learn in the eighth
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(training, "schedule", lambda *_: iter(broken))
        train_student(build_student(network(), (0,)), taught, HEAD, plan, tmp_path / "cut")
    resumed = build_student(network(), (0,))
    train_student(resumed, taught, HEAD, plan, tmp_path / "cut")
    for name, weights in own_weights(resumed).items():
        torch.testing.assert_close(weights, own_weights(whole)[name])
        assert not torch.equal(weights, own_weights(begin)[name])
    for other in ((taught, plan._replace(layers=[2])), (taught[1:], plan)):
        with pytest.raises(ValueError, match="another training"):
            train_student(resumed, other[0], HEAD, other[1], tmp_path / "cut")


def test_distillation_brings_a_student_nearer(taught, tmp_path):
    student, rows = build_student(network(), (0,)), network().lm_head.weight.detach()[HEAD]
    before = training.mean_divergence(student, taught, rows)
    train_student(student, taught, HEAD, TrainingPlan([0], 4_000, 1e-2), tmp_path / "student")
    assert training.mean_divergence(student, taught, rows) < before / 2


def test_a_student_of_other_layers_is_refused(tmp_path):
    """That a stored one comes back with the weights that were trained is in test_finishing.py."""
    target, place = network(), tmp_path / "student.safetensors"
    save_student(build_student(target, (0, 2)), place, {"layers": [0, 2]})
    wider = network().config
    wider.intermediate_size = 64
    with pytest.raises(ValueError, match="layers"):
        assemble(LlamaForCausalLM(wider).eval(), place)
    with pytest.raises(ValueError, match="0 to 2"):
        build_student(target, (3,))
