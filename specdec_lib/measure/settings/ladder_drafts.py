"""Every kind of draft that a ladder has the parts for, built in one place: only this file knows
which match table belongs to which draft, and at which temperature the n-gram table was counted.

A draft that is made of other drafts needs no ladder, and is written where it is compared:
`StagedTree(drafts.tree(16), drafts.scout(8), guided=2)`, `FirstDraft((copies(8), drafts.tree(6)))`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.cascade.matrix import Matrix
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import LoadedModel, as_fast
from specdec_lib.workload import Ladder, load_ladder

EDITIONS = {"exact": "fast", "int8": "int8"}  # of the target, and the runtime it is loaded on
COPIES = MaxGram(None)  # copies alone, without bigrams


@dataclass(frozen=True)
class LadderDrafts:
    """The drafts of a ladder's models for one sampler.

    matched    with the match tables that were measured for this sampler; else with the default one

    A `model` is "draft", "middle" or "reading"; a draft's table is that of its model and the model
    which it obeys, the one that verifies its guesses. Every method raises ValueError if the ladder
    lacks the model, the n-gram table or the match table.
    """

    ladder: Ladder
    sampler: Sampler
    matched: bool = True

    @property
    def models(self) -> dict[str, LoadedModel]:
        """The models that draft, by name; the usual one first."""
        return drafting_models(self.ladder)

    def chain(self, length: int, *, model: str = "draft", floor: float = 0.0) -> ChainDraft:
        """A chain of so many guesses, up to the first whose score is below the floor."""
        return ChainDraft(self._model(model), length, floor=floor, match=self._match(model))

    def tree(
        self,
        budget: int | None,
        depth: int = 8,
        *,
        widths: tuple[int, ...] | None = None,
        model: str = "draft",
        obeyed: str = "target",
        floor: float = 0.0,
        deepen: float = 0.0,
    ) -> TreeDraft:
        """A best-first tree of so many guesses at most; or one of these widths, and no budget."""
        return TreeDraft(
            self._model(model),
            widths=widths,
            budget=budget,
            depth=depth,
            floor=floor,
            deepen=deepen,
            match=self._match(model, obeyed),
        )

    def scout(self, budget: int, depth: int = 6, *, obeyed: str = "draft") -> NgramDraft:
        """The n-gram table as a best-first guesser of what the draft (or another model) takes."""
        table = self.ladder.katz
        if table is None:
            raise ValueError("these drafts need an n-gram table, and this ladder has none")
        heat = self.ladder.card["katz"]["temperature"]
        match = self._match("n-gram", obeyed)
        return NgramDraft(table, budget=budget, depth=depth, match=match, counted_at=heat)

    def staged_chain(self, length: int, scout: Draft, *, model: str = "draft") -> StagedChain:
        """A chain that a model decodes speculatively from the guesses of a scout."""
        return StagedChain(self._model(model), scout, length, match=self._match(model))

    def cascade(
        self, models: Sequence[str], matrix: Matrix, *, last: MaxGram = COPIES, width: int = 1
    ) -> Relay:
        """The cascade of a K matrix over these models, the strongest first, and Max-Gram, whose
        lengths the matrix sets. A width above 1 makes a comb: a chain with siblings at every node.
        """
        drafters = (*map(self._model, models), last)
        return from_matrix(drafters, matrix, width=width, match=self._match(models[0]))

    def _model(self, name: str) -> LoadedModel:
        found = self.models
        if name not in found:
            raise ValueError(f"models that draft in this ladder: {', '.join(found)}; got {name!r}")
        return found[name]

    def _match(self, guesser: str, obeyed: str = "target") -> MatchTable:
        if not self.matched:
            return MatchTable()
        return self.ladder.match(guesser, self.sampler, obeyed=obeyed)


def copies(length: int, least: int = 1) -> MaxGram:
    """A chain copied from the text so far, after at least so many equal tokens, and nothing where
    there is none; `Ladder.max_gram` goes on with the table's bigrams there.
    """
    return MaxGram(None, length, least=least)


def drafting_models(ladder: Ladder) -> dict[str, LoadedModel]:
    """The models of a ladder that draft, by name; the usual one first."""
    found = {"draft": ladder.draft, "middle": ladder.middle, "reading": ladder.reading}
    return {name: model for name, model in found.items() if model is not None}


def with_int8_drafts(ladder: Ladder) -> Ladder:
    """The same ladder with quicker drafts: weights of eight bits where the fast runtime runs them.

    An int8 edition guesses a little differently, and its passes take less time. The target stays as
    it is and decides every token, so the text is the same. What races takes these drafts (`bench`,
    `plan`, `measure walltime`, `learning` and `regret`); a table of counts has the exact ones, with
    which two machines count the same.
    """
    int8 = {
        name: as_fast(model, "int8")
        for name, model in drafting_models(ladder).items()
        if isinstance(model, FastModel) and model.edition == "exact"
    }
    return replace(ladder, **int8)


def racing_ladder(edition: str) -> Ladder:
    """The embedded ladder with a target of this edition and quicker drafts, as it is clocked."""
    return with_int8_drafts(load_ladder(device="cpu", runtime=EDITIONS[edition]))
