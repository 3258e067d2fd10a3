"""`specdec distil matches`: how often a guess is what the other model takes, by its rank and gap:
the match tables, measured on development prompts.

A round accepts along the target's own text, so the rates are those of the positions of that text:
every position is looked at once, whatever the trees are.
"""

import json
from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.context import Context
from specdec_lib.core.files import write_whole
from specdec_lib.core.tree import TokenTree, leading
from specdec_lib.core.verify import reject
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.texts import every_domain, write_texts
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
KINDS = (
    *((*pair, "ranked") for pair in PAIRS),
    *(("draft", "target", siblings) for siblings in DRAWN),
)
LENGTH = 128  # tokens of each text
Guesses = tuple[Sequence[int], Sequence[float], int]  # tokens or ranks, gaps, and what was taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on the development prompts of every domain, write match.json and list it in the
    card.
    """
    parser = Parser("distil matches", "measure how often a guess is right, by its rank and gap")
    parser.add_common("--limit", None, "development prompts of each domain (default: all)")
    parser.add_common("--out", LADDER)
    given = parser.parse_args(arguments)
    ladder = load_ladder(folder=given.out, device="cpu")
    tables = measure(ladder, every_domain("development", given.limit))
    lines = ",\n".join(json.dumps(table) for table in tables)
    write_whole(given.out / MATCH, f"[\n{lines}\n]\n".encode())
    write_card(dict(ladder.card), given.out)


def measure(ladder: Ladder, prompts: Sequence[Prompt]) -> list[dict]:
    """A match table per pair of models and sampler, as match.json holds them."""
    tables = []
    for sampler in SAMPLERS:
        seen, taken = np.zeros((2, len(KINDS), RANKS, len(EDGES) + 1))
        written = write_texts(ladder, prompts, sampler, max_new_tokens=LENGTH)
        found = [*zip(prompts, seeds(prompts, 0), written, strict=True)]
        for prompt, seed, text in tqdm(found, f"match tables, T = {sampler.temperature:g}"):
            for looked in _look(ladder, ladder.encode(prompt), text, Chance(seed, sampler)):
                for kind, (tokens, gaps, right) in enumerate(looked):
                    at = kind, range(len(tokens)), np.searchsorted(EDGES, gaps, side="right")
                    seen[at] += 1
                    taken[at] += np.array(tokens) == right
        how = {"temperature": sampler.temperature, "top_k": sampler.top_k}
        how["contexts"] = sum(map(len, written))
        for kind, sums in zip(KINDS, zip(seen, taken, strict=True), strict=True):
            head = dict(zip(("guesser", "obeyed", "siblings"), kind, strict=True))
            tables.append(head | how | _rates(*sums, how["contexts"], kind[2] == "ranked"))
    return tables


def _look(
    ladder: Ladder, given: tuple[int, ...], written: tuple[int, ...], chance: Chance
) -> Iterator[list[Guesses]]:
    """What is guessed and taken at every position of one text of the target, per kind."""
    text, context = given + written, Context.of(given)
    logits = {
        model.name: model.score(context, TokenTree.of_paths(context, [written[:-1]])).float()
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
        ranked = [(*guessed[guesser], taken[obeyed]) for guesser, obeyed in PAIRS]
        yield ranked + [_drawn(text[:position], rows, siblings, chance) for siblings in DRAWN]


def _drawn(
    text: tuple[int, ...], rows: dict[str, Tensor], siblings: str, chance: Chance
) -> Guesses:
    """The ranks of drawn siblings, and the one that `reject` accepts, -1 for none."""
    model = TableModel(lambda tokens: rows["draft"], len(rows["draft"]))
    draft = TreeDraft(model, widths=(RANKS,), siblings=siblings)
    tree = draft.propose(Context.of(text), chance)
    path = reject(tree, rows["target"].expand(len(tree), -1), chance).path
    return range(tree.guesses), [0.0] * tree.guesses, path[0] - 1 if path else -1


def _rates(seen: np.ndarray, taken: np.ndarray, contexts: int, binned: bool) -> dict:
    """The rates: per rank over all positions, and per bin drawn a little towards them."""
    (rates,) = monotone([taken.sum(1) / contexts])
    found = {"rates": [round(rate, 4) for rate in rates], "edges": [], "binned": []}
    if binned:
        drawn = (taken + PRIOR * np.array(rates)[:, None]) / (seen + PRIOR)
        found |= {"edges": list(EDGES), "binned": drawn.T.round(4).tolist()}
    return found
