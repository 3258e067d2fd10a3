"""Text that the target writes to learn from, as shards of token ids.

It completes a user turn, then answers it (Xu et al. 2024, "Magpie", give the empty turn; the
openings here add code, summaries and word problems, which an empty turn rarely has), or answers
a request about a passage, code or a translated string that others wrote (`specdec distil passages`
takes them out of package archives). The target's own requests are drawn at temperature 0.8 and
half of the answers at temperature 1, the others are greedy. An interrupted run goes on.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.generation import stop_tokens, turn_end
from specdec_lib.suite.distil.passages import Piece, read_pieces
from specdec_lib.suite.distil.places import passages_file
from specdec_lib.suite.distil.requests import ARTICLE_TOKENS, FOLLOW_UPS, Request, Requests
from specdec_lib.suite.distil.shards import Conversation

KEPT_OUT = ("biopython", "celery", "trio")  # packages that drafts are judged on, never taught
SHORT = {
    "chat": 18, "code": 14, "summary": 5, "math": 14, "question": 16, "dialogue": 9,
    "translation": 12, "rewriting": 8, "article": 4,
}  # weights of kinds that need few positions  # fmt: skip
ABOUT_OTHERS = {"passage": 55, "passages": 25, "file": 20}  # of those about texts of others
JUDGED = ("passage", "passages", "file", "code", "rewriting")  # kinds written for KEPT_OUT
ANSWER_TOKENS = 300  # at most
REQUEST_TEMPERATURE = 0.8
SHORT_POSITIONS = 1280  # tokens that a conversation of a short kind has at most
LONG_POSITIONS = 2304  # the same about texts of others
SEQUENCES = 64  # conversations at a time
READ_TOGETHER = 24  # texts that are awaited before they are read, unless nothing else is to do
READ_TOKENS = 32_768  # of texts read in one pass, padding included

Asked = tuple[list[int], int, float]  # tokens to read, position of the first, then a temperature
Talk = Generator[Asked, int, Conversation | None]


def given_pieces(path: Path, kinds: str) -> list[Piece]:
    """The pieces of a file; none for the short kinds, which can do without, if the usual one is not
    there, and a line says so.
    """
    if kinds == "short" and path == passages_file() and not path.is_file():
        print(f"there are no passages in {path}: all requests are the target's own")
        return []
    return read_pieces(path)


def own_articles(
    conversations: Sequence[Conversation], tokenizer: PreTrainedTokenizerFast
) -> list[str]:
    """The articles among conversations that ended by themselves: passages to ask about."""
    found = []
    for one in conversations:
        if one.kind == "article" and one.done:
            first, end = one.answers[0]
            found.append(str(tokenizer.decode([*one.ids[first : end - 1]])).strip())
    return found


def planned(
    pieces: Sequence[Piece], kinds: str, seed: int, articles: list[str] | None = None
) -> Requests:
    """The requests of `short`, `long` or `kept-out` kinds, over the packages that they may use.

    articles    of the target's own, which are passages too
    """
    weights: Mapping[str, float] = SHORT if kinds == "short" else ABOUT_OTHERS
    if kinds == "kept-out":
        weights = dict.fromkeys(JUDGED, 1.0)
    out = kinds == "kept-out"
    allowed = [one for one in pieces if (one.package.split(" ")[0].lower() in KEPT_OUT) == out]
    return Requests(allowed, dict(weights), [] if articles is None else articles, seed)


class Writer:
    """Writes conversations with a chat model, many at a time; with a model without a chat template,
    texts that go on. A seed's text repeats only on the same machine and versions.

    sequences    conversations at a time
    positions    tokens that one has at most; a request that leaves no room for its answer is
                 not made
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        requests: Requests,
        sequences: int = SEQUENCES,
        positions: int = SHORT_POSITIONS,
    ) -> None:
        self.tokenizer = tokenizer
        self.requests = requests
        self.random = Random(requests.random.random())
        self.device = model.device
        seed = self.random.getrandbits(60)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.before, between, again = turn_marks(tokenizer)
        self.prefix = [] if tokenizer.chat_template else begin_tokens(tokenizer)
        self.handover = self._ids(between)
        self.next_turn = self._ids(again)
        ends = stop_tokens(model.generation_config, tokenizer)
        self.end = turn_end(tokenizer) or next(iter(ends), None)
        self.special = {*tokenizer.added_tokens_decoder, *ends}
        self.positions = positions
        self.passes = BatchedPasses(model, sequences, positions)
        self.sequences = sequences
        self.skipped: Counter = Counter()

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def write(self) -> Iterator[Conversation]:
        """Conversations in the order in which they end, without end."""
        active = [self._converse() for _ in range(self.sequences)]
        asked = [next(one) for one in active]
        while True:
            waiting = [number for number, one in enumerate(asked) if len(one[0]) > 1]
            single = self.sequences - len(waiting)
            now = waiting if len(waiting) >= READ_TOGETHER or not single else []
            chosen: dict[int, int] = {}
            for group in self._groups(asked, now):
                chosen |= self._read(asked, group)
            if single:
                chosen |= self._step(asked, set(waiting))
            for number, token in chosen.items():
                try:
                    asked[number] = active[number].send(token)
                except StopIteration as ended:
                    if ended.value is not None and ended.value.answer_tokens:
                        yield ended.value
                    active[number] = self._converse()
                    asked[number] = next(active[number])

    def _groups(self, asked: Sequence[Asked], numbers: Sequence[int]) -> Iterator[list[int]]:
        """Groups of sequences whose texts are read in one pass: of like length, not too many."""
        group: list[int] = []
        for number in sorted(numbers, key=lambda one: (asked[one][1] > 0, len(asked[one][0]))):
            longest = max([len(asked[one][0]) for one in [*group, number]])
            mixed = group and (asked[group[0]][1] > 0) != (asked[number][1] > 0)
            if group and (mixed or longest * (len(group) + 1) > READ_TOKENS):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    def _read(self, asked: Sequence[Asked], numbers: list[int]) -> dict[int, int]:
        """Read the texts of some sequences; the next token of each."""
        texts = [asked[number][0] for number in numbers]
        starts = [asked[number][1] for number in numbers]
        logits = self.passes.read(numbers, texts, starts)
        chosen = self._draw(logits, [asked[number][2] for number in numbers])
        return dict(zip(numbers, chosen, strict=True))

    def _step(self, asked: Sequence[Asked], waiting: set[int]) -> dict[int, int]:
        """One token more of all sequences; the next token of those that do not wait to be read,
        whose first place is written over when they are.
        """
        tokens = torch.tensor([one[0][0] for one in asked])
        positions = torch.tensor([one[1] for one in asked])
        logits = self.passes.logits(tokens, positions)
        chosen = self._draw(logits, [one[2] for one in asked])
        return {number: one for number, one in enumerate(chosen) if number not in waiting}

    def _draw(self, logits: Tensor, temperatures: list[float]) -> list[int]:
        heat = torch.tensor(temperatures, device=self.device)
        return draw(logits, heat, self.generator, greedy=heat == 0).tolist()

    def request(self, one: Conversation) -> str:
        """The text of a conversation's first request."""
        first = len(self.prefix) + len(self._ids(self.before))
        ids = one.ids[first : one.start - len(self.handover)]
        return str(self.tokenizer.decode([*ids])).strip()

    def _converse(self) -> Talk:
        """A conversation, which yields tokens to be read, their position and the temperature of
        what follows, and is sent what follows. None if the target's request is empty.
        """
        request, tokens = self._begun()
        greedy = self.random.random() < 0.5
        limit = ARTICLE_TOKENS if request.kind == "article" else ANSWER_TOKENS
        answers: list[tuple[int, int]] = []
        known = 0
        for turn in range(request.turns if self.next_turn else 1):
            added = request.added if turn == 0 else 50
            if added:
                known = yield from self._extend(tokens, known, added, REQUEST_TEMPERATURE)
            tokens += self.handover
            if known == len(tokens):  # the text ended where nothing stands between
                return None
            start = len(tokens)
            known = yield from self._extend(tokens, known, limit, 0.0 if greedy else 1.0, self.end)
            if len(tokens) > start:
                answers.append((start, len(tokens)))
            done = tokens[-1] == self.end
            tokens += self.next_turn[done and self.next_turn[:1] == [self.end] :]
            tokens += self._ids(self.random.choice(FOLLOW_UPS))
            if len(tokens) + 50 + len(self.handover) + limit >= self.positions:
                break
        if not answers:
            return None
        ids = tokens[: answers[-1][1]]
        if request.kind == "article" and done:
            first, end = answers[0]
            self.requests.articles.append(str(self.tokenizer.decode(ids[first : end - 1])).strip())
        return Conversation(tuple(ids), tuple(answers), greedy, done, request.kind)

    def _begun(self) -> tuple[Request, list[int]]:
        """A request, and its first tokens, which leave room for an answer."""
        while True:
            request = self.requests.draw()
            tokens = [*self.prefix, *self._ids(self.before + request.text)]
            room = self.positions - len(tokens) - request.added - len(self.handover)
            long_enough = room > min(ARTICLE_TOKENS // 2 + 1, self.positions // 2)
            if tokens and long_enough and not self.special & set(self._ids(request.text)):
                return request, tokens
            self.skipped[request.kind] += 1

    def _extend(
        self, tokens: list[int], known: int, most: int, temperature: float, end: int | None = None
    ) -> Generator[Asked, int, int]:
        """Append at most so many tokens that follow; the number of those that were read.

        A special token ends it (another turn, or a document boundary), and is kept if it is `end`.
        """
        for _ in range(min(most, self.positions - len(tokens))):
            token = yield tokens[known:], known, temperature
            known = len(tokens)
            if token in self.special:
                if token == end:
                    tokens.append(token)
                return known
            tokens.append(token)
        return known


def turn_marks(tokenizer: PreTrainedTokenizerFast) -> tuple[str, str, str]:
    """What a chat template puts before a request, between it and its answer, and between that and
    the next request; nothing without a template.  Raises ValueError if the template does not
    write a request once, as it is.
    """
    if tokenizer.chat_template is None:
        return "", "", ""
    asked = "<request>"
    answered = "<answer>"
    talk = [{"role": "user", "content": asked}]

    def written() -> str:
        return str(tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True))

    parts = written().split(asked)
    if len(parts) != 2:
        raise ValueError(f"the chat template writes a request {len(parts) - 1} times, not once")
    before, between = parts
    talk += [{"role": "assistant", "content": answered}, {"role": "user", "content": asked}]
    later = written().split(answered)[1]
    return before, between, later.split(asked)[0]


def begin_tokens(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The tokens that a tokenizer puts before any text."""
    found: list[int] = tokenizer.encode("")
    return [token for token in found if token != tokenizer.eos_token_id] or found


def plain(text: str) -> str:
    """A text in lower case with single spaces: equal requests that are written differently."""
    return " ".join(text.casefold().split())
