"""A draft tried on a text: what it proposes, what is accepted, and its speed by measured passes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from operator import mul
from statistics import mean
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.measure import latency, recorded_target
from specdec_lib.measure.settings.explorers import TreeSize
from specdec_lib.theory import Overhead, PassTable, Work, plain_work
from specdec_lib.workload import Ladder, Prompt, seeds

NEW_TOKENS = 16  # of a text whose rounds are counted, at most
MOST_GUESSES = 64  # that are drawn
HOST = ["round_overhead", "guess_overhead", "pass_overhead"]


def size_of_widths(text: str) -> TreeSize:
    """The size of a tree with the widths in a text such as "4,2,1,1", else ValueError."""
    words = text.replace(",", " ").split()
    widths = tuple(map(int, words)) if all(map(str.isdecimal, words)) else ()
    guesses = sum(accumulate(widths, mul))
    if not guesses or 0 in widths or guesses > MOST_GUESSES:
        raise ValueError(
            "widths are numbers from 1 on, such as 4,2,1,1, of up to"
            f" {MOST_GUESSES} guesses; got {text!r}"
        )
    return TreeSize(guesses, len(widths), widths)


class DraftTrial:
    """Drafts tried on texts of one ladder; it remembers texts."""

    def __init__(self, ladder: Ladder, prompts: Sequence[Prompt]) -> None:
        if not prompts:
            raise ValueError("an explorer needs a prompt, got none")
        self.ladder = ladder
        self.prompts = {prompt.name: prompt for prompt in prompts}
        write = partial(recorded_target.record_target, ladder.target, max_new_tokens=NEW_TOKENS)
        self._recorded = lru_cache(256)(write)

    def read(self, at: Mapping[str, Any]) -> tuple[Context, Chance]:
        """The text and the noise that the knobs are at: one's own text where it is not empty, or a
        prompt with the noise of a sweep; greedily, top-k leaves all as it is.
        """
        prompt = self.prompts[at["prompt"]]
        seed = at["seed"]
        temperature = at["temperature"]
        own = bool(at["text"].strip())
        context = Context.of(self.ladder.encode(at["text"] if own else prompt))
        sampler = Sampler(temperature, top_k=at.get("top_k") if temperature else None)
        return context, Chance(seed if own else seeds([prompt], seed)[0], sampler)

    def follow(self, context: Context, chance: Chance, draft: Draft) -> Generation:
        """What `decode` gives: the target writes a text once, and each draft's rounds follow it."""
        recorded = self._recorded(context, chance)
        return recorded_target.replay_draft(
            recorded, draft, chance, stop_tokens=self.ladder.stop_tokens
        )


@dataclass(frozen=True)
class PassTimes:
    """Measured seconds on a machine: of passes by model on the fast runtime, and in `speeds`, as of
    `latency.stored_tables`, of the host around them.
    """

    machine: str
    tables: Mapping[str, PassTable]
    speeds: pd.DataFrame

    @classmethod
    def read(cls, ladder: Ladder) -> "PassTimes | None":
        """The stored times of this machine, else of the README's; None for other models than those
        that were timed.  Raises ValueError where nothing is stored.
        """
        if ladder.card != json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8")):
            return None
        timed = latency.pass_times(ladder)
        tables = latency.pass_tables(timed, "fast")
        speeds = latency.stored_tables()["speeds"]
        machine = str(timed.machine.iloc[0])
        return cls(machine, tables, speeds[speeds.runtime == "fast"])

    def speed_up(self, work: Work, temperature: float, *, host: bool) -> float:
        """Plain decoding's seconds per token ÷ this draft's.

        host    whether to add the host's seconds, as fitted for trees at the nearest temperature
        """
        ours = alone = Overhead()
        if host:
            apart = (self.speeds.temperature - temperature).abs()
            near = self.speeds[apart == apart.min()].drop_duplicates("kind").set_index("kind")
            ours, alone = (Overhead(*near.loc[kind, HOST]) for kind in ("tree", "autoregressive"))
        context = round(mean(context for _, _, context in work.passes))
        speed = work.tokens_per_second(self.tables, ours)
        plain = plain_work(context=context, target=work.target)
        return speed / plain.tokens_per_second(self.tables, alone)
