"""The tokens so far: a prompt, and what was generated after it."""

from dataclasses import dataclass, field

from specdec_lib.core.kinds import unchecked

Tokens = list[int] | tuple[int, ...]


@dataclass(frozen=True)
class Context:
    """All tokens so far: the first `prompt_tokens` are the prompt, the rest were generated.

    prompt_tokens    1…len(tokens); 1 for an encoder-decoder model (the decoder's start token)
    source           the encoder's tokens; None for a decoder-only model
    """

    tokens: tuple[int, ...]
    prompt_tokens: int
    source: tuple[int, ...] | None = None
    # the very tuple that `extended` went on from
    begun: tuple[int, ...] | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ValueError("the prompt is empty; give a token, such as that of the start")
        if not 1 <= self.prompt_tokens <= len(self):
            raise ValueError(f"prompt_tokens must lie in 1…{len(self)}, got {self.prompt_tokens}")
        if min(self.tokens) < 0:
            raise ValueError(f"tokens are numbers from 0 on, got {min(self.tokens)}")

    @classmethod
    def of(cls, prompt: Tokens, source: tuple[int, ...] | None = None) -> "Context":
        """The context of a prompt, with nothing generated yet."""
        return cls(tuple(prompt), len(prompt), source)

    def extended(self, tokens: Tokens) -> "Context":
        """This context with generated tokens appended (numbers from 0 on, not checked)."""
        return unchecked(
            Context,
            tokens=self.tokens + tuple(tokens),
            prompt_tokens=self.prompt_tokens,
            source=self.source,
            begun=self.tokens,
        )

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.tokens[: self.prompt_tokens]

    @property
    def generated(self) -> tuple[int, ...]:
        return self.tokens[self.prompt_tokens :]

    def __len__(self) -> int:
        return len(self.tokens)
