"""`specdec distil write`: lets the target write text to learn from, as shards of token ids.

It completes a user turn, then answers it (Xu et al. 2024, "Magpie", give the empty turn; the
openings here add code, summaries and word problems, which an empty turn rarely has). Requests are
drawn at temperature 1; half of the answers are greedy, half are drawn at temperature 1. An
interrupted run goes on where it stopped.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import torch
from tqdm import tqdm
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.core.commandline import Parser
from specdec_lib.core.locking import only_process
from specdec_lib.measure.texts import every_domain
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.suite.distil.text import (
    TEXT,
    Conversation,
    answer_tokens,
    list_shards,
    read_text,
    stored,
)
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import DOMAINS

OPENINGS = {
    "chat": (
        "", "", "", "", "", "",  # the empty turn: three in ten chat requests
        "How do I", "How does", "Can you", "Why", "I'm", "I", "Explain", "Describe", "Give me a",
        "When", "Who", "Compare", "Write an email", "List",
    ),
    "code": (
        "Write a Python function", "Write a function that",
        "Complete this Python function:\n\ndef ",
        "Fix the bug in this code:\n\n", "Create a Python class", "def ", "Explain this code:\n\n",
        "Write a docstring for this function:\n\ndef ", "Write a test for", "Implement",
    ),
    "summary": (
        "Summarize the following text:\n\n", "Summarize this article:\n\n", "Summarize",
        "Shorten this passage:\n\n",
        "Read the following passage and answer the question.\n\n",
        "Rewrite this text in plain words:\n\n",
    ),
    "math": (
        "How many", "Solve:", "Calculate", "If", "A", "What is", "Calculate the average",
        "Solve this word problem step by step:\n\n",
    ),
}  # fmt: skip
REQUEST_TOKENS = {"chat": 70, "code": 100, "summary": 160, "math": 90}  # that the target may add


def main(arguments: Sequence[str] | None = None) -> None:
    """Write conversations into shards until there are enough answer tokens; earlier ones count."""
    parser = Parser("distil write", "let the target write text to learn from")
    counted = "in all, earlier shards included"
    parser.add_argument("--answer-tokens", type=int, default=5_000_000, help=counted)
    parser.add_common("--out", TEXT)
    given = parser.parse_args(arguments)
    with only_process(given.out):
        found = read_text(given.out) if list_shards(given.out) else []
        wanted = given.answer_tokens - answer_tokens(found)
        if wanted > 0:
            write_text(given.out, wanted, seed=1000 + len(found))
    print(f"{answer_tokens(read_text(given.out)):,} answer tokens are in {given.out}")


def write_text(folder: Path, wanted: int, *, seed: int) -> None:
    """Let the target write conversations with so many answer tokens; those whose request is one of
    the prompts are left out.
    """
    writer = Writer(load_target(), load_tokenizer(prepare_target()), seed=seed)
    asked = {plain(one.text) for one in every_domain("all")}
    fresh = (one for one in writer.write() if plain(writer.request(one)) not in asked)
    with tqdm(total=wanted, unit="token", mininterval=5) as bar:
        for one in stored(folder, fresh):
            bar.update(one.answer_tokens)
            wanted -= one.answer_tokens
            if wanted <= 0:
                break


class Writer:
    """Writes conversations with a chat model, many at a time.

    answer_tokens    of each answer, at most
    seed             of openings and choices; a text repeats only on the same machine and versions
    domains          that requests are of; a domain that is named twice comes twice as often
    """

    def __init__(
        self,
        model: LlamaForCausalLM,
        tokenizer: PreTrainedTokenizerFast,
        *,
        seed: int,
        sequences: int = 128,
        answer_tokens: int = 300,
        temperature: float = 1.0,
        domains: Sequence[str] = ("chat", *DOMAINS),
    ) -> None:
        self.tokenizer, self.random, self.sequences = tokenizer, Random(seed), sequences
        self.answer_tokens, self.temperature, self.domains = answer_tokens, temperature, domains
        self.generator = torch.Generator().manual_seed(seed)
        self.end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.special = set(tokenizer.added_tokens_decoder)
        template = tokenizer.apply_chat_template(
            [{"role": "user", "content": "?"}], tokenize=False, add_generation_prompt=True
        )
        self.before, between = template.split("?")
        self.handover = tokenizer(between).input_ids[1:]  # what follows the end of the request
        positions = 96 + max(REQUEST_TOKENS.values()) + len(self.handover) + answer_tokens
        self.passes = BatchedPasses(model, sequences, positions)

    def write(self) -> Iterator[Conversation]:
        """Conversations in the order in which they end, without end."""
        active = [self._converse() for _ in range(self.sequences)]
        asked = [next(one) for one in active]
        while True:
            tokens, positions, greedy = map(torch.tensor, zip(*asked, strict=True))
            logits = self.passes.logits(tokens, positions)
            chosen = draw(logits, self.temperature, self.generator, greedy=greedy).tolist()
            for number, token in enumerate(chosen):
                try:
                    asked[number] = active[number].send(token)
                except StopIteration as ended:
                    if ended.value.answer_tokens:
                        yield ended.value
                    active[number] = self._converse()
                    asked[number] = next(active[number])

    def request(self, one: Conversation) -> str:
        """The text of a conversation's request."""
        first = len(self.tokenizer(self.before).input_ids)
        return self.tokenizer.decode(one.ids[first : one.start - len(self.handover) - 1]).strip()

    def _converse(self) -> Generator[tuple[int, int, bool], int, Conversation]:
        """A conversation, which yields a token to be read, its position, and whether what follows
        is greedy, and is sent what follows.
        """
        domain, start = self.random.choice(self.domains), None
        tokens = self.tokenizer(self.before + self.random.choice(OPENINGS[domain])).input_ids
        greedy, limit = self.random.random() < 0.5, len(tokens) + REQUEST_TOKENS[domain]
        for position in count():
            token = yield tokens[position], position, greedy and start is not None
            if position + 1 < len(tokens):
                continue
            special = token in self.special  # another turn or a document boundary: cut before it
            if not special or (start is not None and token == self.end):
                tokens.append(token)
            if special or len(tokens) >= limit:
                if start is not None:
                    return Conversation(
                        tuple(tokens), start, greedy, tokens[-1] == self.end, domain
                    )
                tokens += [self.end, *self.handover]
                start, limit = len(tokens), len(tokens) + self.answer_tokens


def plain(text: str) -> str:
    """A text in lower case with single spaces: equal requests that are written differently."""
    return " ".join(text.casefold().split())
