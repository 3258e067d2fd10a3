"""The rounds of any draft along the target's own text: only the draft runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, decode, models_in, refuse_learners
from specdec_lib.core.protocols import Draft, LanguageModel, StateReader, Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.combined import NoDraft

Prefix = Context | Sequence[int]
AFTER_THE_END = -1  # no token: whatever is guessed after a stop token is not looked at


@dataclass(frozen=True)
class RecordedTarget:
    """A recorded text that takes the target's place in `decode` and computes nothing.

    tokens    as `decode` with `NoDraft` emits them; fewer than `limit` end with a stop token
    limit     the `max_new_tokens` of the generation that is replayed
    """

    name: str
    vocabulary: int
    max_positions: int
    context: Context
    tokens: tuple[int, ...]
    limit: int

    @classmethod
    def of(
        cls, model: LanguageModel, prompt: Prefix, tokens: tuple[int, ...], limit: int
    ) -> "RecordedTarget":
        """A text that the target wrote after a prompt, cut to `limit` tokens."""
        context = prompt if isinstance(prompt, Context) else Context.of(tuple(prompt))
        about = (model.name, model.vocabulary, model.max_positions)
        return cls(*about, context, tokens[:limit], limit)

    @property
    def runtime(self) -> str:
        """Nothing computes."""
        return ""

    @property
    def usage(self) -> None:
        """Nothing is computed."""

    def forget(self) -> None:
        """Do nothing: there is no model."""

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes none"]:
        """A row without logits per node: `verdict` reads the text."""
        return torch.empty(len(tree), 0)

    def verdict(
        self, tree: TokenTree, target_logits: Float[Tensor, "nodes none"], chance: Chance
    ) -> Verdict:
        """The verdict of `look_up` where the target's choices are the tokens of the text."""
        known = _KnownChoices(chance.seed, start=len(self.context), tokens=self.tokens)
        return look_up(tree, target_logits, known)


@dataclass(frozen=True)
class _KnownChoices(Chance):
    """A chance whose choice at a position is the token that stands there in a text."""

    start: int = 0  # the position of the text's first token
    tokens: tuple[int, ...] = ()

    def choose(self, logits: Float[Tensor, " none"], position: int) -> int:
        place = position - self.start
        return self.tokens[place] if place < len(self.tokens) else AFTER_THE_END


def record_target(
    target: LanguageModel, prompt: Prefix, chance: Chance, *, max_new_tokens: int
) -> RecordedTarget:
    """The target as its text after a prompt, past any stop token; raises ValueError as `decode`."""
    written = decode(target, NoDraft(), prompt, chance, max_new_tokens=max_new_tokens)
    return RecordedTarget.of(target, prompt, written.tokens, len(written.tokens))


def read_whole(text: RecordedTarget, draft: Draft) -> None:
    """Let the target of every model in a draft that reads its hidden states read the whole text
    first: in a few passes, where each round would need one.
    """
    whole = text.context.extended(text.tokens)
    for model in models_in(draft).values():
        if isinstance(model, StateReader) and model.target is not None:
            model.target.states(whole, len(whole) - 1)


def replay_draft(
    text: RecordedTarget, draft: Draft, chance: Chance, *, stop_tokens: Sequence[int] = ()
) -> Generation:
    """The generation that `decode` would give with this draft, `look_up` and the text's chance; the
    target's passes are not in its usage, and take no time.

    Raises ValueError if a text ends before its limit and not with a stop token, or a draft learns.
    """
    if len(text.tokens) < text.limit and text.tokens[-1] not in stop_tokens:
        raise ValueError(
            f"a text of {len(text.tokens)} tokens ends before its limit of {text.limit}, and its"
            f" last token is not a stop token: {list(stop_tokens)}"
        )
    refuse_learners("replay", draft)
    read_whole(text, draft)
    return decode(
        text,
        draft,
        text.context,
        chance,
        rule=text.verdict,
        max_new_tokens=text.limit,
        stop_tokens=stop_tokens,
    )
