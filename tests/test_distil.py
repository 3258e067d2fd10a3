"""The writer of text: shards come back as they were, and every token is the model's own choice."""

from itertools import islice

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.models.batched import BatchedPasses
from specdec_lib.suite.distil import writing
from specdec_lib.suite.distil.writing import Conversation
from specdec_lib.workload import DOMAINS

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
CONVERSATIONS = [
    Conversation((1, 65_535, 3), 1, True, True, "code"),
    Conversation((7, 8, 9, 10), 2, False, False, "math"),
    Conversation((4, 5), 2, False, True, "chat"),
]


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {piece: at for at, piece in enumerate(sorted(ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    found = PreTrainedTokenizerFast(tokenizer_object=made, chat_template=TEMPLATE)
    found.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    return found


def network() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2}
    config = LlamaConfig(vocab_size=259, max_position_embeddings=512, **sizes, **heads)
    return LlamaForCausalLM(config).eval()


def test_shards_come_back_and_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "SHARD_ANSWER_TOKENS", 4)
    for number, _ in enumerate(writing.stored(tmp_path, CONVERSATIONS)):
        assert writing.read_text(tmp_path) == CONVERSATIONS[: number + 1]  # nothing waits
    next(writing.stored(tmp_path, CONVERSATIONS))
    shards = writing.list_shards(tmp_path)
    assert [len(list(writing.read_shard(path))) for path in shards] == [2, 1, 1]
    assert writing.read_text(tmp_path) == [*CONVERSATIONS, CONVERSATIONS[0]]


def batched(model: LlamaForCausalLM, texts: list[list[int]]) -> list[torch.Tensor]:
    """Logits after the last token of each text, read in passes; shorter ones begin later."""
    passes = BatchedPasses(model, len(texts), max(map(len, texts)) + 1)
    longest, fed = max(map(len, texts)), [0] * len(texts)
    for step in range(longest):
        tokens = [one[at] for one, at in zip(texts, fed, strict=True)]
        logits = passes.logits(torch.tensor(tokens), torch.tensor(fed))
        begun = [step >= longest - len(one) for one in texts]
        fed = [min(at + new, len(one) - 1) for at, new, one in zip(fed, begun, texts, strict=True)]
    return list(logits.float())


def test_the_batched_passes_give_hugging_faces_logits():
    """Within the rounding of bfloat16; texts whose last two tokens are swapped are far outside."""
    model = network()
    random = torch.Generator().manual_seed(1)
    texts = [torch.randint(259, (size,), generator=random).tolist() for size in (17, 5, 11)]
    swapped = [[*one[:-2], one[-1], one[-2]] for one in texts]
    with torch.no_grad():
        wanted = torch.stack([model(torch.tensor([one])).logits[0, -1] for one in texts])
    found = (torch.stack(batched(model, some)) for some in (texts, swapped))
    near, far = ((one - wanted).abs().amax(dim=1) / wanted.std() for one in found)
    assert near.max() < 0.15 and far.min() > 1


def test_frequencies_of_the_rotation_are_not_rounded():
    """In bfloat16 a key at position 250 would be turned by half a radian."""
    body = BatchedPasses(network(), 1, 4, dtype=torch.bfloat16).body
    assert body.embed_tokens.weight.dtype == torch.bfloat16
    assert body.rotary_emb.inv_freq.dtype == torch.float32


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four short conversations at a time."""
    for domain in DOMAINS:
        monkeypatch.setitem(writing.REQUEST_TOKENS, domain, 6)
    monkeypatch.setattr(writing, "ANSWER_TOKENS", 20)
    monkeypatch.setattr(writing, "SEQUENCES", 4)


def write(model: LlamaForCausalLM, count: int, seed: int = 3) -> list[Conversation]:
    return list(islice(writing.Writer(model, tokenizer(), seed=seed).write(), count))


def test_greedy_answers_are_the_likeliest_tokens_and_drawn_ones_are_not(short):
    model = network()
    lags = {True: 0.0, False: 0.0}  # by greedy: how far a chosen logit is below the best, at most
    for one in write(model, 24):
        with torch.no_grad():
            rows = model(torch.tensor([one.ids])).logits[0, one.start - 1 : -1]
        chosen = rows.gather(1, torch.tensor(one.ids[one.start :])[:, None])[:, 0]
        lag = float((rows.max(dim=-1).values - chosen).max()) / float(rows.std())
        lags[one.greedy] = max(lags[one.greedy], lag)
    assert lags[True] < 0.3 < 1 < lags[False]


def test_a_conversation_that_ends_is_replaced_and_each_has_its_template(short):
    reader = tokenizer()
    found = write(network(), 24)
    assert len(found) == 24 > 4 and {one.greedy for one in found} == {True, False}
    for one in found:
        asked, answer = reader.decode(one.ids[: one.start]), one.ids[one.start :]
        assert asked.startswith("<|im_start|>user\n")
        assert asked.endswith("<|im_end|>\n<|im_start|>assistant\n")
        assert 1 <= len(answer) <= 20 and one.domain in DOMAINS
        assert one.done == (answer[-1] == reader.convert_tokens_to_ids("<|im_end|>"))
    assert write(network(), 6) == found[:6] != write(network(), 6, seed=4)
