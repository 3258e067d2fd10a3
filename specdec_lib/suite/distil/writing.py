"""The target writes text to learn from: it completes a user turn, then answers it.

By default a conversation's request is drawn at temperature 1; half of the answers are greedy, half
are drawn at temperature 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.suite.distil.requests import DOMAINS, REQUEST_TOKENS, Opening, draw_opening
from specdec_lib.suite.distil.text import Conversation

ANSWER_TOKENS = 300


@dataclass
class _Sequence:
    """A conversation that is being written."""

    opening: Opening
    greedy: bool
    tokens: list[int]
    fed: int = 0  # how many tokens the model has read
    limit: int = 0  # the length at which the present turn is cut
    start: int | None = None  # where the answer begins, once it has
    forced: list[int] = field(default_factory=list)


class Writer:
    """Writes conversations with a chat model, many at a time.

    sequences        how many are written at a time
    answer_tokens    of each answer, at most
    seed             of openings and choices; a text repeats only on the same machine and versions
    temperature      of what is drawn
    domains          that requests are of; a domain that is named twice comes twice as often
    """

    def __init__(
        self,
        model: LlamaForCausalLM,
        tokenizer: PreTrainedTokenizerFast,
        *,
        sequences: int,
        seed: int,
        answer_tokens: int = ANSWER_TOKENS,
        temperature: float = 1.0,
        domains: Sequence[str] = ("chat", *DOMAINS),
    ) -> None:
        self.tokenizer, self.random = tokenizer, Random(seed)
        self.answer_tokens, self.temperature, self.domains = answer_tokens, temperature, domains
        self.generator = torch.Generator().manual_seed(seed)
        self.end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
        template = tokenizer.apply_chat_template(
            [{"role": "user", "content": "?"}], tokenize=False, add_generation_prompt=True
        )
        self.before, self.between = template.split("?")
        self.handover = tokenizer(self.between).input_ids[1:]  # what follows the end of the request
        positions = 96 + max(REQUEST_TOKENS.values()) + len(self.handover) + answer_tokens
        self.passes = BatchedPasses(model, sequences, positions)
        self.sequences = [self._new() for _ in range(sequences)]

    def write(self) -> Iterator[Conversation | None]:
        """Conversations in the order in which they end, without end; None after each pass."""
        while True:
            tokens = torch.tensor([one.tokens[one.fed] for one in self.sequences])
            positions = torch.tensor([one.fed for one in self.sequences])
            greedy = torch.tensor([one.greedy and one.start is not None for one in self.sequences])
            logits = self.passes.logits(tokens, positions)
            chosen = draw(logits, self.temperature, self.generator, greedy=greedy).tolist()
            for number, (one, token) in enumerate(zip(self.sequences, chosen, strict=True)):
                one.fed += 1
                if one.fed == len(one.tokens) and self._ends(one, token):
                    if len(one.tokens) > one.start:
                        ids, done = tuple(one.tokens), one.tokens[-1] == self.end
                        yield Conversation(ids, one.start, one.greedy, done, one.opening.domain)
                    self.sequences[number] = self._new()
            yield None

    def request(self, ids: Sequence[int], start: int) -> str:
        """The text of a conversation's request; `start` is where its answer begins in `ids`."""
        first = len(self.tokenizer(self.before).input_ids)
        return self.tokenizer.decode(ids[first : start - len(self.handover) - 1]).strip()

    def _new(self) -> _Sequence:
        opening = draw_opening(self.random, self.domains)
        tokens = self.tokenizer(self.before + opening.text).input_ids
        limit = len(tokens) + REQUEST_TOKENS[opening.domain]
        return _Sequence(opening, self.random.random() < 0.5, tokens, limit=limit)

    def _ends(self, one: _Sequence, token: int) -> bool:
        """Append a chosen token; whether the conversation is over."""
        if one.start is None:
            if token in self.special or len(one.tokens) + 1 >= one.limit:
                one.tokens += [] if token in self.special else [token]
                one.tokens += [self.end, *self.handover]
                one.start = len(one.tokens)
                one.limit = one.start + self.answer_tokens
            else:
                one.tokens.append(token)
            return False
        if token in self.special and token != self.end:
            return True  # another turn or a document boundary: cut before it
        one.tokens.append(token)
        return token == self.end or len(one.tokens) >= one.limit
