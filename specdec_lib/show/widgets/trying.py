"""A draft tried on a text: what it proposes, what is accepted, and its speed by measured passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, read_prompt, rounds
from specdec_lib.core.protocols import Draft
from specdec_lib.measure import recorded_target
from specdec_lib.measure.machine import HERE, machine_name, stored_clocked, stored_machines
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.measure.recorded_target import RecordedTarget
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.target_text import known_texts
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Overhead, PassTable, Work, plain_work
from specdec_lib.workload import DOMAINS, Ladder, Prompt, seeds

NEW_TOKENS = 16  # of a text whose rounds are counted, at most
HOST = ["round_overhead", "guess_overhead", "pass_overhead"]
QUICK = (4, 3)  # budget and depth of the tree with which a target writes a text


class DraftTrial:
    """Drafts tried on texts of one ladder; it remembers texts, and the rounds of drafts on them."""

    def __init__(self, ladder: Ladder, prompts: Sequence[Prompt]) -> None:
        if not prompts:
            raise ValueError("an explorer needs a prompt, got none")
        self.ladder = ladder
        self.prompts = {prompt.name: prompt for prompt in prompts}
        self._stored = lru_cache(64)(self._read_stored)
        self._recorded = lru_cache(256)(self._record)
        self._followed = lru_cache(256)(self._follow)

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

    def domain_of(self, at: Mapping[str, Any]) -> dict[str, object]:
        """The domain of the prompt that the knobs are at, as a parameter of a notebook; none if it
        is not one of the embedded ones.
        """
        domain = self.prompts[at["prompt"]].domain
        return {"domain": domain} if domain in DOMAINS else {}

    def number_of(self, at: Mapping[str, Any]) -> dict[str, object]:
        """The same and the prompt's number among all, for notebooks that take one of them."""
        return {**self.domain_of(at), "prompt": [*self.prompts].index(at["prompt"])}

    def follow(self, context: Context, chance: Chance, draft: Draft) -> Generation:
        """What `decode` gives: the target writes a text once, and each draft's rounds follow it."""
        return self._followed(context, chance, draft)

    def _follow(self, context: Context, chance: Chance, draft: Draft) -> Generation:
        recorded = self._recorded(context, chance)
        return recorded_target.replay_draft(
            recorded, draft, chance, stop_tokens=self.ladder.stop_tokens
        )

    def _record(self, context: Context, chance: Chance) -> RecordedTarget:
        """The text that the target writes: a stored one, else written here with a small tree, which
        changes no token and takes fewer passes; a prompt that it still holds is not read again.
        """
        target = self.ladder.target
        tokens = self._stored(chance.sampler).get((context, chance.seed))
        if tokens is None:
            quick = LadderDrafts(self.ladder, chance.sampler).tree(*QUICK)
            read_prompt(target, quick, context, again=True)
            run = rounds(target, quick, context, chance, max_new_tokens=NEW_TOKENS)
            tokens = tuple(token for played, _ in run for token in played.emitted)
        return RecordedTarget.of(target, context, tokens, len(tokens))

    def _read_stored(self, sampler: Sampler) -> dict[tuple[Context, int], tuple[int, ...]]:
        """The beginnings of the stored texts of these prompts, by their context and their noise."""
        target = self.ladder.target
        if isinstance(target, FastModel) and target.edition != "exact":
            return {}  # it may write others
        found = {}
        for text in known_texts([sampler], self.ladder, max_new_tokens=NEW_TOKENS):
            prompt = self.prompts.get(text.prompt)
            if prompt is not None and text.is_of(prompt):
                context = Context.of(self.ladder.encode(prompt))
                found[context, text.chance.seed] = text.tokens[:NEW_TOKENS]
        return found


@lru_cache(8)
def host_seconds(machine: str) -> pd.DataFrame:
    """The stored seconds of the host on the fast runtime; no rows where none are stored."""
    if machine not in stored_machines("speeds"):
        return pd.DataFrame()
    speeds = stored_clocked("speeds", machine, verb="latency")
    return speeds[speeds.runtime == "fast"]


@dataclass(frozen=True)
class PassTimes:
    """Measured seconds on a machine: of passes by model, and in `speeds`, as of `specdec measure
    latency`, of the host around them; without rows where those were not measured there.
    """

    machine: str
    tables: Mapping[str, PassTable]
    speeds: pd.DataFrame

    @classmethod
    def read(cls, machines: Machines, name: str) -> "PassTimes | None":
        """The times of a machine, of the host as they are stored for machines of its name; None for
        models without any.
        """
        if not name:
            return None
        known = machine_name() if name == HERE else name
        return cls(machines.describe(name), machines.tables(name), host_seconds(known))

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
