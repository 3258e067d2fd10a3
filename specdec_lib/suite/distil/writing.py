"""`specdec distil write`: lets the target write text to learn from, as shards of token ids.

It completes a user turn, then answers it (Xu et al. 2024, "Magpie", give the empty turn; the
openings here add code, summaries and word problems, which an empty turn rarely has). Requests and
half of the answers are drawn at temperature 1, the others greedy. An interrupted run goes on.

A shard is one safetensors file: 16-bit `ids` of all its conversations one after the other, `ends`
(where each stops), `starts` (where its answer begins, counted from its own first token), `greedy`,
`done` (it ended by itself) and `domain` (an index into DOMAINS).
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import accumulate, count, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from safetensors.torch import save
from tqdm import tqdm
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.core.files import DATA, tensor_file, write_whole
from specdec_lib.core.locking import only_process
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.measure.texts import every_domain
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import DOMAINS

TEXT = DATA / "text"
SHARD_ANSWER_TOKENS = 500_000
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
ANSWER_TOKENS = 300  # at most
SEQUENCES = 128  # conversations at a time


class Conversation(NamedTuple):
    """A request and its answer as token ids, chat template included."""

    ids: tuple[int, ...]
    start: int  # where the answer begins
    greedy: bool  # whether the answer was greedy, else drawn at temperature 1
    done: bool  # whether it ended by itself
    domain: str

    @property
    def answer_tokens(self) -> int:
        """The length of the answer."""
        return len(self.ids) - self.start


def add_text(parser: Parser) -> None:
    """Add the option that names the folder of shards."""
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")


def list_shards(folder: Path) -> list[Path]:
    """The paths of a folder's shards in order."""
    return sorted(folder.glob("*.safetensors"))


def read_text(folder: Path) -> list[Conversation]:
    """All conversations of a folder's shards.  Raises ValueError if there is no shard."""
    shards = list_shards(folder)
    if not shards:
        raise ValueError(f"there is no shard NNN.safetensors in {folder}")
    return [one for shard in shards for one in read_shard(shard)]


def stored(folder: Path, conversations: Iterable[Conversation]) -> Iterator[Conversation]:
    """The conversations. A shard is written whole with each of them until it is full, before the
    next is asked for, so a run that is killed loses none; the next run begins another shard.
    """
    number, growing = len(list_shards(folder)), []
    for one in conversations:
        growing.append(one)
        write_whole(folder / f"{number:03}.safetensors", pack(growing))
        yield one
        if sum(each.answer_tokens for each in growing) >= SHARD_ANSWER_TOKENS:
            number, growing = number + 1, []


def pack(conversations: Sequence[Conversation]) -> bytes:
    """Conversations as the content of a shard; torch refuses ids of more than 16 bits."""
    columns = {  # values, and their type
        "ids": ([token for one in conversations for token in one.ids], torch.uint16),
        "ends": ([*accumulate(len(one.ids) for one in conversations)], torch.int32),
        "starts": ([one.start for one in conversations], torch.int16),
        "greedy": ([one.greedy for one in conversations], torch.bool),
        "done": ([one.done for one in conversations], torch.bool),
        "domain": ([DOMAINS.index(one.domain) for one in conversations], torch.uint8),
    }
    return save({name: torch.tensor(one, dtype=kind) for name, (one, kind) in columns.items()})


def read_shard(path: Path) -> Iterator[Conversation]:
    """The conversations of a shard, in order."""
    with tensor_file(path) as file:
        shard = {name: file.get_tensor(name).tolist() for name in file.keys()}
    columns = (shard[name] for name in ("starts", "greedy", "done", "domain"))
    for (first, end), *known, domain in zip(pairwise([0, *shard["ends"]]), *columns, strict=True):
        yield Conversation(tuple(shard["ids"][first:end]), *known, DOMAINS[domain])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write conversations into shards until there are enough answer tokens; earlier ones count.
    Those whose request is one of the prompts are left out.
    """
    parser = Parser("distil write", "let the target write text to learn from")
    parser.add_argument("--answer-tokens", type=int, default=5_000_000, help="in all shards")
    parser.add_common("--out", TEXT)
    given = parser.parse_args(arguments)
    with only_process(given.out):
        found = read_text(given.out) if list_shards(given.out) else []
        bar = tqdm(total=given.answer_tokens, unit="token", mininterval=5)
        bar.update(sum(one.answer_tokens for one in found))
        if bar.n < bar.total:
            writer = Writer(load_target(), load_tokenizer(prepare_target()), seed=1000 + len(found))
            asked = {plain(one.text) for one in every_domain("all")}
            fresh = (one for one in writer.write() if plain(writer.request(one)) not in asked)
            for one in stored(given.out, fresh):
                bar.update(one.answer_tokens)
                if bar.n >= bar.total:
                    break
    print(f"{bar.n:,} answer tokens are in {given.out}")


class Writer:
    """Writes conversations with a chat model, many at a time. A seed's text repeats only on the
    same machine and versions.
    """

    def __init__(
        self, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, *, seed: int
    ) -> None:
        self.tokenizer, self.random = tokenizer, Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.special = set(tokenizer.added_tokens_decoder)
        template = tokenizer.apply_chat_template(
            [{"role": "user", "content": "?"}], tokenize=False, add_generation_prompt=True
        )
        self.before, between = template.split("?")
        self.handover = tokenizer(between).input_ids[1:]  # what follows the end of the request
        positions = 96 + max(REQUEST_TOKENS.values()) + len(self.handover) + ANSWER_TOKENS
        self.passes = BatchedPasses(model, SEQUENCES, positions)

    def write(self) -> Iterator[Conversation]:
        """Conversations in the order in which they end, without end."""
        active = [self._converse() for _ in range(SEQUENCES)]
        asked = [next(one) for one in active]
        while True:
            tokens, positions, greedy = map(torch.tensor, zip(*asked, strict=True))
            logits = self.passes.logits(tokens, positions)
            chosen = draw(logits, 1.0, self.generator, greedy=greedy).tolist()
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
        domain, start = self.random.choice(("chat", *DOMAINS)), None  # twice as many chats
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
                    done = tokens[-1] == self.end
                    return Conversation(tuple(tokens), start, greedy, done, domain)
                tokens += [self.end, *self.handover]
                start, limit = len(tokens), len(tokens) + ANSWER_TOKENS


def plain(text: str) -> str:
    """A text in lower case with single spaces: equal requests that are written differently."""
    return " ".join(text.casefold().split())
