"""A draft tried on a text: what it proposes, what is accepted, and its speed by measured passes."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from operator import mul
from statistics import mean
from typing import Any, NamedTuple

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import latency, replay
from specdec_lib.measure.sweep import stacks
from specdec_lib.theory import Overhead, PassTable, Work, plain_work
from specdec_lib.workload import Ladder, Prompt, seeds

REMEMBERED = 256  # generations, and as many texts
NEW_TOKENS = 16  # of a text whose rounds are counted, at most
MOST_GUESSES = 64  # that are drawn
WIDTHS = "widths are whole numbers of at least 1, one per depth, such as 4,2,1,1; got"
GUESSERS = ("draft", "middle", "n-gram", "Max-Gram", "draft and Max-Gram")
NEEDS = {"middle": "middle", "n-gram": "katz", "draft, for the middle model": "middle"}


class TreeSize(NamedTuple):
    """How large a tree is: a budget and a depth, or the children per node at each depth."""

    budget: int
    depth: int
    widths: tuple[int, ...] = ()


def size_of_widths(text: str) -> TreeSize:
    """The size of a tree with the widths in a text such as "4,2,1,1".  Raises ValueError for other
    text, or more than MOST_GUESSES guesses.
    """
    words = text.replace(",", " ").split()
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise ValueError(f"{WIDTHS} {text!r}")
    widths = tuple(map(int, words))
    if (guesses := sum(accumulate(widths, mul))) > MOST_GUESSES:
        raise ValueError(
            f"widths {widths} make {guesses} guesses; at most {MOST_GUESSES} are drawn"
        )
    return TreeSize(guesses, len(widths), widths)


def guesser(
    ladder: Ladder, sampler: Sampler, name: str, size: TreeSize, obeyed: str = "target"
) -> Draft:
    """One of GUESSERS: a tree of a model or of the n-gram table, or a copied chain as deep as the
    tree would be, or the draft's tree merged with such a chain.
    """
    budget, depth, widths = size
    if name == "n-gram":
        table = stacks.scout(ladder, sampler, obeyed=obeyed, budget=budget, depth=depth)
        return replace(table, budget=None, widths=widths) if widths else table
    if name == "Max-Gram":
        return replace(ladder.max_gram, length=min(budget, depth))
    if name in ("draft", "middle"):
        limits = {"widths": widths} if widths else {"budget": budget, "depth": depth}
        match = ladder.match(name, sampler, obeyed=obeyed)
        return TreeDraft(getattr(ladder, name), match=match, **limits)
    copied = MaxGram(None, min(budget, depth))
    return MergedDraft((guesser(ladder, sampler, "draft", size), copied))


def offered_by(ladder: Ladder, names: Sequence[str]) -> list[str]:
    """The guessers or scouts for which the ladder has the parts."""
    return [name for name in names if getattr(ladder, NEEDS.get(name, "draft")) is not None]


class DraftTrial:
    """Drafts tried on texts of one ladder; it remembers texts and generations.  Raises ValueError
    if there is no prompt.
    """

    def __init__(self, ladder: Ladder, prompts: Sequence[Prompt]) -> None:
        if not prompts:
            raise ValueError("an explorer needs a prompt, got none")
        self.ladder, self.prompts = ladder, {prompt.name: prompt for prompt in prompts}
        remember = lru_cache(REMEMBERED)
        write = partial(replay.own_text, ladder.target, max_new_tokens=NEW_TOKENS)
        self._encode, self._own_text = remember(ladder.encode), remember(write)
        self._remembered = remember(self._follow)

    def read(self, at: Mapping[str, Any]) -> tuple[Context, Chance]:
        """The text and the noise that the knobs are at: one's own text where it is not empty, or a
        prompt with the noise of a sweep; greedily, top-k leaves all as it is.  Raises ValueError if
        there is no room for new tokens.
        """
        prompt, seed, temperature = self.prompts[at["prompt"]], at["seed"], at["temperature"]
        own = bool(at["text"].strip())
        tokens = self._encode(at["text"] if own else prompt)
        most = self.ladder.target.max_positions - NEW_TOKENS
        if not 0 < len(tokens) <= most:
            raise ValueError(
                f"a text of 1 to {most} tokens leaves room for {NEW_TOKENS} more, got {len(tokens)}"
                " tokens"
            )
        sampler = Sampler(temperature, top_k=at.get("top_k") if temperature else None)
        return Context.of(tokens), Chance(seed if own else seeds([prompt], seed)[0], sampler)

    def generation(
        self, at: Mapping[str, Any], make: Callable[..., Draft], *setting: Hashable
    ) -> Generation:
        """What `decode` gives on the text and with the sampling that the knobs are at.

        make    the draft of a ladder, a sampler and a setting
        """
        return self._remembered(*self.read(at), make, *setting)

    def _follow(
        self, context: Context, chance: Chance, make: Callable[..., Draft], *setting: Hashable
    ) -> Generation:
        """The target writes its text once, and each draft's rounds follow along it."""
        text, draft = self._own_text(context, chance), make(self.ladder, chance.sampler, *setting)
        return replay.replay_draft(text, draft, chance, stop_tokens=self.ladder.stop_tokens)


@dataclass(frozen=True)
class PassTimes:
    """Measured seconds of a machine by its name: of the models' passes, and of the host around
    them, by temperature and kind of draft.
    """

    machine: str
    tables: Mapping[str, PassTable]
    overheads: Mapping[tuple[float, str], Overhead]

    @classmethod
    def read(cls, ladder: Ladder) -> "PassTimes":
        """The stored times of the first machine that has any, on the fast runtime, for those models
        of the ladder that were timed and not for others of the same names.  Raises ValueError where
        nothing is stored.
        """
        found = latency.stored_tables("")
        speeds = found["speeds"].query("runtime == 'fast'").groupby(["temperature", "kind"])
        rows = speeds[["round_overhead", "guess_overhead", "pass_overhead"]].first().itertuples()
        timed = json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8"))
        sizes = [
            {name: one["parameters"] for name, one in card["models"].items()}
            for card in (timed, ladder.card)
        ]
        tables = latency.pass_tables(found["latency"], "fast")
        return cls(
            str(found["latency"].machine.iloc[0]),
            {name: one for name, one in tables.items() if len({s.get(name) for s in sizes}) == 1},
            {row[0]: Overhead(*map(float, row[1:])) for row in rows},
        )

    def speed_up(self, work: Work, temperature: float, *, host: bool) -> float | None:
        """Plain decoding's seconds per token ÷ this draft's; None where a model that ran was not
        timed.

        host    whether to add the host's seconds, as fitted for trees at the nearest temperature
        """
        if {model for model, _, _ in work.passes} - set(self.tables):
            return None
        ours = alone = Overhead()
        if host:
            nearest = min((one for one, _ in self.overheads), key=lambda t: abs(t - temperature))
            ours, alone = (self.overheads[nearest, kind] for kind in ("tree", "autoregressive"))
        context = round(mean(context for _, _, context in work.passes))
        speed = work.tokens_per_second(self.tables, ours)
        plain = plain_work(context=context, target=work.target)
        return speed / plain.tokens_per_second(self.tables, alone)
