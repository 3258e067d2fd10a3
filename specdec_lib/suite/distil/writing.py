"""`specdec distil write`: lets the target write text to learn from, as shards of token ids.

It completes a user turn, then answers it (Xu et al. 2024, "Magpie", give the empty turn; the
openings here add code, summaries and word problems, which an empty turn rarely has). By default a
conversation's request is drawn at temperature 1; half of the answers are greedy, half are drawn at
temperature 1. An interrupted run goes on where it stopped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import torch
from tqdm import tqdm
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.core.commandline import Parser
from specdec_lib.core.locking import only_process
from specdec_lib.measure.texts import every_domain
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.tokenizers import load_tokenizer
from specdec_lib.suite.distil.text import TEXT, Conversation, TextStore, answer_tokens, count_text
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import DOMAINS

ANSWER_TOKENS = 300
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
    """Write conversations into shards until there are enough answer tokens; earlier ones count, and
    those whose request is one of the prompts are left out. What there is then is counted.
    """
    parser = Parser("distil write", "let the target write text to learn from")
    add, counted = parser.add_argument, "in all, earlier shards included"
    add("--answer-tokens", type=int, default=5_000_000, help=counted)
    add("--sequences", type=int, default=128, help="how many are written at a time")
    parser.add_common("--out", TEXT)
    given = parser.parse_args(arguments)
    with only_process(given.out):
        store = TextStore(given.out)
        if answer_tokens(store) < given.answer_tokens:
            write_text(store, given.answer_tokens, given.sequences)
    print(count_text(store).round(3).to_string())


def write_text(store: TextStore, wanted: int, sequences: int) -> None:
    """Let the target write conversations until the store has so many answer tokens."""
    seed = 1000 + len(list(store))  # another one for each continuation
    tokenizer = load_tokenizer(prepare_target())
    writer = Writer(load_target(), tokenizer, sequences=sequences, seed=seed)
    asked = {plain(one.text) for one in every_domain("all")}
    with tqdm(total=wanted, initial=answer_tokens(store), unit="token", mininterval=5) as bar:
        for one in writer.write():
            if plain(writer.request(one)) in asked:
                continue
            store.add(one)
            bar.update(one.answer_tokens)
            if answer_tokens(store) >= wanted:
                break


@dataclass
class _Sequence:
    """A conversation that is being written.

    limit    the length at which the present turn is cut
    fed      how many tokens the model has read
    start    where the answer begins, once it has
    """

    domain: str
    greedy: bool
    tokens: list[int]
    limit: int
    fed: int = 0
    start: int | None = None


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
        self.before, between = template.split("?")
        self.handover = tokenizer(between).input_ids[1:]  # what follows the end of the request
        positions = 96 + max(REQUEST_TOKENS.values()) + len(self.handover) + answer_tokens
        self.passes = BatchedPasses(model, sequences, positions)
        self.sequences = [self._new() for _ in range(sequences)]

    def write(self) -> Iterator[Conversation]:
        """Conversations in the order in which they end, without end."""
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
                        yield Conversation(ids, one.start, one.greedy, done, one.domain)
                    self.sequences[number] = self._new()

    def request(self, one: Conversation) -> str:
        """The text of a conversation's request."""
        first = len(self.tokenizer(self.before).input_ids)
        return self.tokenizer.decode(one.ids[first : one.start - len(self.handover) - 1]).strip()

    def _new(self) -> _Sequence:
        domain = self.random.choice(self.domains)
        opening = self.random.choice(OPENINGS[domain])
        tokens = self.tokenizer(self.before + opening).input_ids
        limit = len(tokens) + REQUEST_TOKENS[domain]
        return _Sequence(domain, self.random.random() < 0.5, tokens, limit)

    def _ends(self, one: _Sequence, token: int) -> bool:
        """Append a chosen token; whether the conversation is over."""
        special = token in self.special
        if special and one.start is not None and token != self.end:
            return True  # another turn or a document boundary: cut before it
        if not special or one.start is not None:
            one.tokens.append(token)
        if one.start is not None:
            return token == self.end or len(one.tokens) >= one.limit
        if special or len(one.tokens) >= one.limit:
            one.tokens += [self.end, *self.handover]
            one.start = len(one.tokens)
            one.limit = one.start + self.answer_tokens
        return False


def plain(text: str) -> str:
    """A text in lower case with single spaces: equal requests that are written differently."""
    return " ".join(text.casefold().split())
