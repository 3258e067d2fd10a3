"""A draft that copies from the answers to earlier prompts. It learns in every round of `decode`,
whoever guessed. Its guesses, and so the tokens (not the distribution) that `reject` gives, depend
on the order of prompts.

Source: Hu et al. 2024 (SAM decoding) and Oliaro et al. 2024 (SuffixDecoding) remember answers; ours
lies beside Max-Gram, which reads the present text.
"""

from dataclasses import dataclass, field
from typing import Annotated

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import NodeLogits
from specdec_lib.core.tree import Count, TokenTree
from specdec_lib.drafts.max_gram import as_text, copied_chain, find_ending

WINDOW = 32  # tokens of a context's end that are looked up, at most
MOST_TOKENS = 100_000  # of answers that are remembered
END = chr(0x10FFFF)  # after each answer: no token, so that no match goes on into the next


class AnswerMemory:
    """The generated tokens of earlier contexts, as characters; copies and pickles start empty.

    Each `follow` replaces its prompt's answer. Where the new one departs before the last `WINDOW`
    tokens of the old one, both are kept. Above `MOST_TOKENS` in all, the oldest are dropped.
    """

    def __init__(self) -> None:
        self._answers: dict[object, str] = {}  # by prompt and source; old ones by themselves

    def __reduce__(self) -> tuple[type["AnswerMemory"], tuple[()]]:
        return AnswerMemory, ()

    @in_turn
    def follow(self, context: Context) -> None:
        """Store the generated tokens of `context` as the answer to its prompt and source."""
        asked = (context.prompt, context.source)
        answer = as_text(context.generated)
        before = self._answers.pop(asked, "")
        if before and not (answer and answer.startswith(before[:-WINDOW])):
            self._answers[object()] = before
        self._answers[asked] = answer
        while sum(map(len, self._answers.values())) > MOST_TOKENS:
            del self._answers[next(iter(self._answers))]

    @in_turn
    def find(self, context: Context, least: int, length: int) -> tuple[int, ...]:
        """At most `length` tokens after the first occurrence, in all answers but the present one,
        of the longest suffix of this context found there, if it is not shorter than `least`.
        """
        own = (context.prompt, context.source)
        text = "".join(one + END for asked, one in self._answers.items() if one and asked != own)
        end = find_ending(as_text(context.tokens[-WINDOW:]), text, least)
        return () if end is None else tuple(map(ord, text[end : end + length].partition(END)[0]))


@checked
@dataclass(frozen=True, eq=False)
class EarlierAnswers:
    """A chain copied from what was generated for earlier prompts: what followed the longest suffix
    of the context that occurs there.

    length    tokens that are copied, at most
    least     tokens that must match, at least
    memory    the earlier answers; copies made by `dataclasses.replace` share it

    It learns while it decodes: its guesses depend on the prompts before, and so do the tokens that
    `reject` gives, but not their distribution; `look_up` gives the target's own either way.
    """

    length: Count = 8
    least: Annotated[int, Within(1, WINDOW)] = 3
    memory: AnswerMemory = field(default_factory=AnswerMemory, kw_only=True, repr=False)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        tokens = self.memory.find(context, self.least, self.length)
        return copied_chain(context, tokens, ["earlier answer"] * len(tokens))

    def learn(self, context: Context, tree: TokenTree, target_logits: NodeLogits) -> None:
        """Keep the answer so far; the tokens of its last round are never seen."""
        self.memory.follow(context)
