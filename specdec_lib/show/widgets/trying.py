"""A draft tried on a text: what it proposes, what is accepted, and what that costs by measured
passes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure import latency, replay
from specdec_lib.measure.sweep import stacks
from specdec_lib.theory import Overhead, PassTable, Work, plain_work
from specdec_lib.workload import Ladder, Prompt

PLAIN = "autoregressive"  # the kind of plain decoding in the stored speeds
REMEMBERED = 256  # generations, and as many texts
HOSTS: Mapping[type, str] = {
    TreeDraft: "tree",
    ChainDraft: "chain",
    StagedTree: "staged",
}  # the kind of draft whose host was fitted


@dataclass(frozen=True)
class Plan:
    """How large a tree shall be: a budget and a depth, or widths per depth.

    Raises ValueError if widths are given and there is none, or one below 1.
    """

    budget: int
    depth: int
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.widths is not None and not (self.widths and min(self.widths) >= 1):
            raise ValueError(
                "widths are whole numbers of at least 1, one per depth, such as 4,2,1,1; got"
                f" {self.widths}"
            )

    @classmethod
    def of(cls, budget: int, depth: int, widths: str = "", *, most: int) -> "Plan":
        """The plan of three knobs; widths as text, "4,2,1,1", or none.

        Raises ValueError for other text, or more than `most` guesses.
        """
        if not widths.strip():
            return cls(budget, depth)
        try:
            found = tuple(int(word) for word in widths.replace(" ", ",").split(",") if word)
        except ValueError as problem:
            raise ValueError(
                f"widths are whole numbers, one per depth, such as 4,2,1,1; got {widths!r}"
            ) from problem
        plan = cls(budget, depth, found)
        if plan.guesses > most:
            raise ValueError(
                f"widths {widths} make a tree of {plan.guesses} guesses; at most {most} are drawn"
            )
        return plan

    @property
    def guesses(self) -> int:
        """Nodes without the root, at most."""
        if self.widths is None:
            return self.budget
        level, total = 1, 0
        for width in self.widths:
            level *= width
            total += level
        return total

    @property
    def reach(self) -> int:
        """How deep a chain of that size is."""
        return min(self.budget, self.depth) if self.widths is None else len(self.widths)


Guesser = Callable[[Ladder, Plan, Sampler], Draft]


def of_model(name: str) -> Guesser:
    """Trees of one of the ladder's models, its guesses scored as measured."""

    def guesser(ladder: Ladder, plan: Plan, sampler: Sampler) -> TreeDraft:
        size = (
            {"budget": plan.budget, "depth": plan.depth}
            if plan.widths is None
            else {"widths": plan.widths}
        )
        return TreeDraft(getattr(ladder, name), match=ladder.match(name, sampler), **size)

    return guesser


def of_table(ladder: Ladder, plan: Plan, sampler: Sampler) -> Draft:
    """Trees of the n-gram table."""
    one = stacks.scout(ladder, sampler, obeyed="target", budget=plan.budget, depth=plan.depth)
    return one if plan.widths is None else replace(one, budget=None, widths=plan.widths)


def of_copies(ladder: Ladder, plan: Plan, sampler: Sampler) -> MaxGram:
    """Max-Gram's chain, as deep as the tree would be."""
    return replace(ladder.max_gram, length=plan.reach)


def of_both(ladder: Ladder, plan: Plan, sampler: Sampler) -> MergedDraft:
    """The draft's tree and beside it what Max-Gram copies from the text so far."""
    return MergedDraft((of_model("draft")(ladder, plan, sampler), MaxGram(None, plan.reach)))


GUESSERS: Mapping[str, Guesser] = {
    "draft": of_model("draft"),
    "middle": of_model("middle"),
    "n-gram": of_table,
    "Max-Gram": of_copies,
    "draft and Max-Gram": of_both,
}


def guessers_of(ladder: Ladder) -> dict[str, Guesser]:
    """Those whose parts the ladder has."""
    parts = {"middle": ladder.middle, "n-gram": ladder.katz}
    return {
        name: one for name, one in GUESSERS.items() if name not in parts or parts[name] is not None
    }


@dataclass(frozen=True, eq=False)
class Trial:
    """Drafts tried on texts of one ladder; what was tried before is remembered.

    max_new_tokens    of a text, at most
    """

    ladder: Ladder
    prompts: Sequence[Prompt]
    max_new_tokens: int = 32
    memory: dict[str, Callable] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.prompts or self.max_new_tokens < 1:
            raise ValueError(
                f"an explorer needs a prompt and at least 1 new token, got {len(self.prompts)} and"
                f" {self.max_new_tokens}"
            )
        self.memory.update(
            text=lru_cache(REMEMBERED)(self._text), tokens=lru_cache(REMEMBERED)(self.ladder.encode)
        )

    @property
    def names(self) -> list[str]:
        """Of the prompts."""
        return [prompt.name for prompt in self.prompts]

    def context(self, prompt: str, own: str = "") -> Context:
        """The prompt of that name, or one's own text where it is not empty.

        Raises ValueError if there is no room for a new token after it.
        """
        given = own if own.strip() else next(one.text for one in self.prompts if one.name == prompt)
        tokens, target = self.memory["tokens"](given), self.ladder.target
        if not 0 < len(tokens) <= target.max_positions - self.max_new_tokens:
            most = target.max_positions - self.max_new_tokens
            raise ValueError(
                f"a text of 1 to {most} tokens leaves room for {self.max_new_tokens} more, got"
                f" {len(tokens)} tokens"
            )
        return Context.of(tokens)

    def generation(self, draft: Draft, context: Context, chance: Chance) -> Generation:
        """What `decode` gives with this draft: the target writes its text once, and each draft's
        rounds follow from it.
        """
        text = self.memory["text"](context, chance)
        return replay.replay_draft(text, draft, chance, stop_tokens=self.ladder.stop_tokens)

    def _text(self, context: Context, chance: Chance) -> replay.OwnText:
        return replay.own_text(
            self.ladder.target, context, chance, max_new_tokens=self.max_new_tokens
        )


@dataclass(frozen=True)
class Machine:
    """Measured seconds of a machine: of the models' passes, and of the host around them by
    temperature.

    name          of the machine
    kinds         per temperature, per kind of draft the host's seconds
    parameters    how many each timed model has, where that is known: another model may have the
                  same name
    """

    name: str
    tables: Mapping[str, PassTable]
    kinds: Mapping[float, Mapping[str, Overhead]]
    parameters: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def stored(cls, name: str = "", *, runtime: str = "fast") -> "Machine":
        """From data/measured, as `latency.stored`.

        Raises ValueError where nothing is stored for that machine or runtime.
        """
        found = latency.stored(name)
        speeds: pd.DataFrame = found["speeds"]
        kinds: dict[float, dict[str, Overhead]] = {}
        columns = ["round_overhead", "guess_overhead", "pass_overhead"]
        for (temperature, kind), rows in speeds[speeds.runtime == runtime].groupby(
            ["temperature", "kind"]
        ):
            kinds.setdefault(float(temperature), {})[str(kind)] = Overhead(
                *map(float, rows[columns].iloc[0])
            )
        card = json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8"))
        parameters = {name: one["parameters"] for name, one in card["models"].items()}
        return cls(
            str(found["latency"].machine.iloc[0]),
            latency.tables(found["latency"], runtime),
            kinds,
            parameters,
        )

    def of(self, ladder: Ladder) -> "Machine":
        """The same without the passes of models that the ladder has others in place of, under their
        names.
        """
        own = {name: one["parameters"] for name, one in ladder.card["models"].items()}
        other = {name for name, count in own.items() if self.parameters.get(name, count) != count}
        return replace(
            self, tables={name: table for name, table in self.tables.items() if name not in other}
        )

    def speed_up(
        self, work: Work, temperature: float, *, kind: str | None = "tree"
    ) -> float | None:
        """Plain decoding's seconds per token ÷ this draft's; None where a model that ran was not
        timed, or the kind of draft.

        kind    whose host's seconds are added, as fitted at the nearest temperature; None adds none
        """
        if not self.kinds or {model for model, _, _ in work.passes} - set(self.tables):
            return None
        fitted = self.kinds[min(self.kinds, key=lambda known: abs(known - temperature))]
        host = fitted if kind is not None else {kind: Overhead(), PLAIN: Overhead()}
        if kind not in host or PLAIN not in host:
            return None
        middle = [before for _, _, before in work.passes]
        plain = plain_work(context=round(sum(middle) / len(middle)), target=work.target)
        return work.tokens_per_second(self.tables, host[kind]) / plain.tokens_per_second(
            self.tables, host[PLAIN]
        )
