"""`specdec distil matches`: how often a guess is what the other model takes, by its rank and gap:
the match tables, measured on development prompts.

A round accepts along the target's own text, so the rates are those of the positions of that text:
every position is looked at once, whatever the trees are.
"""

import json
from collections.abc import Sequence

import numpy as np
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.context import Context
from specdec_lib.core.files import write_whole
from specdec_lib.core.tree import leading
from specdec_lib.core.verify import reject
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.replay.recording import chain_of
from specdec_lib.measure.texts import Texts, every_domain
from specdec_lib.models.table import TableModel
from specdec_lib.suite.distil.finishing import LADDER, write_card
from specdec_lib.theory import monotone
from specdec_lib.workload import MATCH, Ladder, Prompt, load_ladder, seeds

SAMPLERS = (Sampler(0.7), Sampler(1.0), Sampler(1.0, top_k=50))
EDGES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
RANKS = 8
# positions at the rank's own rate that are added to each bin, so that a rare bin says little
PRIOR = 20
PAIRS = (
    *(("middle", "target"), ("draft", "target"), ("n-gram", "target")),
    *(("draft", "middle"), ("n-gram", "draft")),
)
DRAWN = ("iid", "distinct")  # siblings whose rates are measured for the draft and the target


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on the development prompts of every domain, write match.json and list it in the
    card.
    """
    parser = Parser("distil matches", "measure how often a guess is right, by its rank and gap")
    parser.add_common("--limit", None, "development prompts of each domain (default: all)")
    parser.add_common("--max-new-tokens", 128)
    parser.add_common("--out", LADDER)
    given = parser.parse_args(arguments)
    ladder, folder = load_ladder(folder=given.out, device="cpu"), given.out
    prompts = every_domain("development", given.limit)
    tables = measure(ladder, prompts, max_new_tokens=given.max_new_tokens)
    lines = ",\n".join(json.dumps(table) for table in tables)
    write_whole(folder / MATCH, f"[\n{lines}\n]\n".encode())
    write_card(dict(ladder.card), folder)


def measure(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    *,
    samplers: Sequence[Sampler] = SAMPLERS,
    max_new_tokens: int = 128,
) -> list[dict]:
    """A match table per pair of models and sampler, as match.json holds them."""
    tables = []
    for sampler in samplers:
        counts = {(*pair, "ranked"): _Counts() for pair in PAIRS}
        counts |= {("draft", "target", siblings): _Counts() for siblings in DRAWN}
        written = Texts.written(ladder, prompts, sampler, max_new_tokens=max_new_tokens)
        found = zip(prompts, seeds(prompts, 0), written.tokens.values(), strict=True)
        for prompt, seed, text in tqdm(
            found, f"match tables, T = {sampler.temperature:g}", total=len(prompts)
        ):
            _look(ladder, ladder.encode(prompt), text, Chance(seed, sampler), counts)
        how = {"temperature": sampler.temperature, "top_k": sampler.top_k}
        for (guesser, obeyed, siblings), found in counts.items():
            head = {"guesser": guesser, "obeyed": obeyed, "siblings": siblings}
            tables.append(head | how | found.table(binned=siblings == "ranked"))
    return tables


def _look(
    ladder: Ladder,
    given: tuple[int, ...],
    written: tuple[int, ...],
    chance: Chance,
    counts: dict[tuple[str, str, str], "_Counts"],
) -> None:
    """Every position of one text that the target wrote."""
    text, context = given + written, Context.of(given)
    logits = {
        model.name: model.score(context, chain_of(context, written[:-1])).float()
        for model in (ladder.target, ladder.middle, ladder.draft)
    }
    table = NgramDraft(ladder.katz, widths=(1,), counted_at=ladder.card["katz"]["temperature"])
    for position in range(len(given), len(text)):
        rows = {name: found[position - len(given)] for name, found in logits.items()}
        guessed = {
            name: leading(*chance.rank(rows[name], position, RANKS), RANKS)
            for name in ("middle", "draft")
        }
        taken = {name: tokens[0] for name, (tokens, _) in guessed.items()}
        taken["target"] = text[position]
        window = text[:position][-ladder.katz.order :]
        guessed["n-gram"] = table.rank(window, RANKS, chance, position)
        for guesser, obeyed in PAIRS:
            counts[guesser, obeyed, "ranked"].add(*guessed[guesser], taken[obeyed])
        for siblings in DRAWN:
            rank, guesses = _drawn(text[:position], rows, siblings, chance)
            counts["draft", "target", siblings].add(range(guesses), [0.0] * guesses, rank)


def _drawn(
    text: tuple[int, ...], rows: dict[str, Tensor], siblings: str, chance: Chance
) -> tuple[int, int]:
    """The rank that `reject` accepts of drawn siblings, -1 for none, and how many there were."""
    model = TableModel(lambda tokens: rows["draft"], len(rows["draft"]))
    draft = TreeDraft(model, widths=(RANKS,), siblings=siblings)
    tree = draft.propose(Context.of(text), chance)
    path = reject(tree, rows["target"].expand(len(tree), -1), chance).path
    return (path[0] - 1 if path else -1), tree.guesses


class _Counts:
    """Guesses seen and taken, by rank and gap."""

    def __init__(self) -> None:
        self.contexts = 0
        self.seen, self.taken = np.zeros((2, RANKS, len(EDGES) + 1))

    def add(self, tokens: Sequence[int], gaps: Sequence[float], taken: int) -> None:
        """One position: what was guessed, best first, and what was taken."""
        self.contexts += 1
        at = range(len(tokens)), np.searchsorted(EDGES, gaps, side="right")
        self.seen[at] += 1
        self.taken[at] += np.array(tokens) == taken

    def table(self, *, binned: bool) -> dict:
        """The rates: per rank over all positions, and per bin drawn a little towards them."""
        (rates,) = monotone([self.taken.sum(1) / self.contexts])
        found = {"contexts": self.contexts, "rates": [round(rate, 4) for rate in rates]}
        if not binned:
            return found | {"edges": [], "binned": []}
        drawn = (self.taken + PRIOR * np.array(rates)[:, None]) / (self.seen + PRIOR)
        return found | {"edges": list(EDGES), "binned": drawn.T.round(4).tolist()}
