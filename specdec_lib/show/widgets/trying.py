"""A draft tried on a text: what it proposes, what is accepted, and its speed by measured passes."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import accumulate
from operator import mul
from typing import Any

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure import latency, replay
from specdec_lib.measure.sweep import stacks
from specdec_lib.theory import Overhead, PassTable, Work, plain_work
from specdec_lib.workload import Ladder, Prompt

PLAIN_KIND = "autoregressive"  # plain decoding in the stored speeds
REMEMBERED = 256  # generations, and as many texts
FITTED_KINDS = {TreeDraft: "tree", ChainDraft: "chain", StagedTree: "staged"}
WIDTHS = "widths are whole numbers of at least 1, one per depth, such as 4,2,1,1; got"


@dataclass(frozen=True)
class TreeSize:
    """How large a tree is: a budget and a depth, or the number of children per node at each depth.

    Raises ValueError if one of the widths is below 1.
    """

    budget: int
    depth: int
    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.widths and min(self.widths) < 1:
            raise ValueError(f"{WIDTHS} {self.widths}")

    @classmethod
    def of_widths(cls, text: str, *, most: int) -> "TreeSize":
        """The size of a tree with the widths in a text such as "4,2,1,1".

        Raises ValueError for other text, or more than `most` guesses.
        """
        words = text.replace(",", " ").split()
        if not words or not all(word.isdecimal() for word in words):
            raise ValueError(f"{WIDTHS} {text!r}")
        widths = tuple(map(int, words))
        if (guesses := sum(accumulate(widths, mul))) > most:
            raise ValueError(f"widths {widths} make {guesses} guesses; at most {most} are drawn")
        return cls(guesses, len(widths), widths)

    @property
    def chain(self) -> int:
        """The length of a chain that is as deep as the tree, within its budget."""
        return min(self.budget, self.depth)


Guesser = Callable[[Ladder, TreeSize, Sampler], Draft]


def model_tree(name: str) -> Guesser:
    """Trees of one of the ladder's models, scored by its match table."""

    def guesser(ladder: Ladder, size: TreeSize, sampler: Sampler) -> TreeDraft:
        model, match = model_named(ladder, name), ladder.match(name, sampler)
        if size.widths:
            return TreeDraft(model, widths=size.widths, match=match)
        return TreeDraft(model, budget=size.budget, depth=size.depth, match=match)

    return guesser


def table_tree(ladder: Ladder, size: TreeSize, sampler: Sampler) -> Draft:
    """A tree of the n-gram table."""
    one = stacks.scout(ladder, sampler, obeyed="target", budget=size.budget, depth=size.depth)
    return replace(one, budget=None, widths=size.widths) if size.widths else one


def copied_chain(ladder: Ladder, size: TreeSize, sampler: Sampler) -> MaxGram:
    """Max-Gram's chain, as deep as the tree would be."""
    return replace(ladder.max_gram, length=size.chain)


def tree_and_copy(ladder: Ladder, size: TreeSize, sampler: Sampler) -> MergedDraft:
    """The draft's tree, merged with what Max-Gram copies from the text so far."""
    return MergedDraft((model_tree("draft")(ladder, size, sampler), MaxGram(None, size.chain)))


GUESSERS: Mapping[str, Guesser] = {
    "draft": model_tree("draft"),
    "middle": model_tree("middle"),
    "n-gram": table_tree,
    "Max-Gram": copied_chain,
    "draft and Max-Gram": tree_and_copy,
}


def model_named(ladder: Ladder, name: str) -> LanguageModel:
    """The ladder's model of that name."""
    return next(model for model in ladder.models if model.name == name)


class DraftTrial:
    """Drafts tried on texts of one ladder; it remembers the texts and generations of before.

    max_new_tokens    of a text, at most

    Raises ValueError if there is no prompt, or no new token.
    """

    def __init__(self, ladder: Ladder, prompts: Sequence[Prompt], max_new_tokens: int = 32) -> None:
        if not prompts or max_new_tokens < 1:
            raise ValueError(
                f"an explorer needs a prompt and at least 1 new token, got {len(prompts)} prompts"
                f" and {max_new_tokens} tokens"
            )
        self.ladder, self.max_new_tokens = ladder, max_new_tokens
        self.texts = {prompt.name: prompt.text for prompt in prompts}
        self._encode = lru_cache(REMEMBERED)(ladder.encode)
        self._own_text = lru_cache(REMEMBERED)(
            partial(replay.own_text, ladder.target, max_new_tokens=max_new_tokens)
        )
        self._remembered = lru_cache(REMEMBERED)(self._follow)

    @property
    def names(self) -> list[str]:
        """The names of the prompts."""
        return list(self.texts)

    def context(self, at: Mapping[str, Any]) -> Context:
        """The prompt that the knobs are at, or one's own text where it is not empty.

        Raises ValueError if there is no room for a new token after it.
        """
        own = at["text"].strip()
        tokens = self._encode(at["text"] if own else self.texts[at["prompt"]])
        most = self.ladder.target.max_positions - self.max_new_tokens
        if not 0 < len(tokens) <= most:
            raise ValueError(
                f"a text of 1 to {most} tokens leaves room for {self.max_new_tokens} more, got"
                f" {len(tokens)} tokens"
            )
        return Context.of(tokens)

    def generation(
        self, at: Mapping[str, Any], make: Callable[..., Draft], *setting: Hashable
    ) -> Generation:
        """What `decode` gives on the text and with the sampling that the knobs are at.

        make    the draft of a ladder, a sampler and a setting
        """
        chance = Chance(at["seed"], knob_sampler(at))
        return self._remembered(self.context(at), chance, make, *setting)

    def _follow(
        self, context: Context, chance: Chance, make: Callable[..., Draft], *setting: Hashable
    ) -> Generation:
        """The target writes its text once, and each draft's rounds follow from it."""
        draft = make(self.ladder, chance.sampler, *setting)
        text = self._own_text(context, chance)
        return replay.replay_draft(text, draft, chance, stop_tokens=self.ladder.stop_tokens)


def knob_sampler(at: Mapping[str, Any]) -> Sampler:
    """The sampler that the knobs are at."""
    return Sampler(at["temperature"], top_k=at.get("top_k"))


@dataclass(frozen=True)
class PassTimes:
    """Measured seconds of a machine: of the models' passes, and of the host around them.

    machine       its name
    tables        per model
    overheads     the host's seconds, per temperature and kind of draft
    parameters    how many each timed model has, where that is known: another model may have the
                  same name
    """

    machine: str
    tables: Mapping[str, PassTable]
    overheads: Mapping[float, Mapping[str, Overhead]]
    parameters: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, machine: str = "", *, runtime: str = "fast") -> "PassTimes":
        """The stored times of a machine, "" for the first that has any.

        Raises ValueError where nothing is stored for that machine or runtime.
        """
        found = latency.stored_tables(machine)
        speeds, curves = found["speeds"], found["latency"]
        columns = ["round_overhead", "guess_overhead", "pass_overhead"]
        overheads: dict[float, dict[str, Overhead]] = {}
        grouped = speeds[speeds.runtime == runtime].groupby(["temperature", "kind"])
        for (temperature, kind), rows in grouped:
            host = Overhead(*map(float, rows[columns].iloc[0]))
            overheads.setdefault(float(temperature), {})[str(kind)] = host
        card = json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8"))
        parameters = {name: one["parameters"] for name, one in card["models"].items()}
        tables = latency.pass_tables(curves, runtime)
        return cls(str(curves.machine.iloc[0]), tables, overheads, parameters)

    def of(self, ladder: Ladder) -> "PassTimes":
        """The same times without those of models for which the ladder has others."""
        own = {name: one["parameters"] for name, one in ladder.card["models"].items()}
        other = {name for name, count in own.items() if self.parameters.get(name, count) != count}
        return replace(
            self, tables={name: one for name, one in self.tables.items() if name not in other}
        )

    def speed_up(
        self, work: Work, temperature: float, *, kind: str | None = "tree"
    ) -> float | None:
        """Plain decoding's seconds per token ÷ this draft's; None where a model that ran was not
        timed, or the kind of draft.

        kind    of draft, whose host's seconds are added as fitted at the nearest temperature; None
                adds none
        """
        if not self.overheads or {model for model, _, _ in work.passes} - set(self.tables):
            return None
        nearest = min(self.overheads, key=lambda known: abs(known - temperature))
        nothing = {kind: Overhead(), PLAIN_KIND: Overhead()}
        host = nothing if kind is None else self.overheads[nearest]
        if not {kind, PLAIN_KIND} <= set(host):
            return None
        contexts = [context for _, _, context in work.passes]
        plain = plain_work(context=round(sum(contexts) / len(contexts)), target=work.target)
        return work.tokens_per_second(self.tables, host[kind]) / plain.tokens_per_second(
            self.tables, host[PLAIN_KIND]
        )
