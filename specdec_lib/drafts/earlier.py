"""Copies from earlier answers: one suffix automaton of all that was generated in this process.

Source: Hu et al. 2024 (SAM decoding) and Oliaro et al. 2024 (SuffixDecoding) keep such a memory;
ours lies beside Max-Gram, which reads the present text.
"""

from dataclasses import dataclass, field

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.tree import TokenTree, check_size
from specdec_lib.drafts.max_gram import DECAY
from specdec_lib.drafts.suffixes import START, Automaton

SOURCE = "earlier answer"
WINDOW = 32  # tokens of a context's end that are looked up, at most
MOST_TOKENS = 100_000  # some 60 MB; then the older half is forgotten


class AnswerMemory:
    """The generated tokens of earlier contexts; copies and pickles of it start empty.

    An answer is added when a context with another prompt, or without a generated token, is seen.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[int, ...]] = []
        self._text: list[int] = []
        self._automaton = Automaton()
        self._open: Context | None = None

    def __reduce__(self) -> tuple[type["AnswerMemory"], tuple[()]]:
        return AnswerMemory, ()

    @in_turn
    def find(self, context: Context, least: int, length: int) -> tuple[int, ...]:
        """At most `length` tokens after the first place in an earlier answer where the longest
        ending of this context stood; none where fewer than `least` tokens match.
        """
        self._follow(context)
        matches = self._automaton.walk((START, 0), context.tokens[-WINDOW:])
        state, matched = matches[-1]
        if matched < least:
            return ()
        start = self._automaton.ends[state]
        copied = self._text[start : start + length]
        ends = (place for place, token in enumerate(copied) if token < 0)
        return tuple(copied[: next(ends, len(copied))])

    def _follow(self, context: Context) -> None:
        before = self._open
        if before is not None and (
            context.prompt_tokens == len(context) or context.prompt != before.prompt
        ):
            self._add(before.generated)
        self._open = context

    def _add(self, answer: tuple[int, ...]) -> None:
        if not answer:
            return
        self._answers.append(answer)
        if len(self._text) + len(answer) < MOST_TOKENS:
            return self._append(answer)
        kept, size = [], 0
        for one in reversed(self._answers):
            size += len(one) + 1
            if size > MOST_TOKENS // 2:
                break
            kept.append(one)
        self._answers, self._text, self._automaton = kept[::-1], [], Automaton()
        for one in self._answers:
            self._append(one)

    def _append(self, answer: tuple[int, ...]) -> None:
        ended = (*answer, -1 - len(self._text))  # no token, and never the same: no match crosses it
        self._text.extend(ended)
        self._automaton.extend(ended)


@checked
@dataclass(frozen=True, eq=False)
class EarlierAnswers:
    """A chain copied from what was generated for earlier prompts.

    length    tokens in the chain, at most
    least     tokens that must match, at least
    memory    the earlier answers; copies made by `dataclasses.replace` share it

    Its guesses depend on what was decoded before, and no output does: rounds are counted on one
    order of prompts.
    """

    length: int = 8
    least: int = 3
    memory: AnswerMemory = field(default_factory=AnswerMemory, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_size("a chain's length", self.length, least=1)
        if not 1 <= self.least <= WINDOW:
            raise ValueError(f"a match has 1 to {WINDOW} tokens, got least={self.least}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The chain, or the root alone where too little matches."""
        tokens = self.memory.find(context, self.least, self.length)
        scores = [DECAY**depth for depth in range(1, len(tokens) + 1)]
        nodes = range(len(tokens))
        return TokenTree.rooted(context).grown(tokens, nodes, source=SOURCE, scores=scores)
