"""`specdec measure acceptance`: holds theory against measurement at full size, for notebook 02.

A wide tree on the development code prompts predicts what a dozen other trees yield on the held-out
ones, and `data/measured/predicted.csv` is what comes of it. Each prompt is decoded once; its ranks
settle every round of every fixed tree (see `replay.shape_rounds`), so what a tree yields is
counted along the text.
"""

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.prediction import (
    compare_predictions,
    errors,
    predicted_shapes,
    predictions,
)
from specdec_lib.measure.acceptance.ranks import replayed_guesses, replayed_tokens
from specdec_lib.measure.replay.shape_rounds import ranks_by_temperature
from specdec_lib.measure.sweep.grid import Setting, generations
from specdec_lib.workload import load_ladder, load_prompts

PLACE = DATA / "measured" / "predicted.csv"
TEMPERATURES = (0.0, 1.0)
QUICK = (4, 2, 1, 1)
WIDE = (6, 3, 2, 1, 1, 1)
COLUMNS = ["temperature", "name", "predictor", "predicted", "measured", "low", "high"]


def _parser() -> Parser:
    parser = Parser("measure acceptance", __doc__.partition(": ")[2])
    for name, default in {"--limit": 120, "--max-new-tokens": 128, "--seed": 0}.items():
        parser.add_common(name, default)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the table and leave data/measured alone"
    )
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    import pandas as pd

    given = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    draft = TreeDraft(ladder.draft, widths=QUICK)
    settings = [Setting("", draft, Sampler(temperature)) for temperature in TEMPERATURES]
    limits = {"seed": given.seed, "max_new_tokens": given.max_new_tokens}
    known, unseen = (
        ranks_by_temperature(
            generations(settings, load_prompts("code", split, given.limit), ladder, **limits),
            draft,
            seed=given.seed,
        )
        for split in ("development", "held-out")
    )
    tables = []
    for temperature, texts in known.items():
        trees = predicted_shapes(texts)
        guesses = replayed_guesses(Shape.of_widths(WIDE), texts)
        measured = replayed_tokens(trees, unseen[temperature])
        compared = compare_predictions(predictions(trees, guesses, texts), measured)
        tables.append(compared.assign(temperature=temperature))
    table = pd.concat(tables)
    print(errors(table, ["temperature", "predictor"]).round(4).to_string(index=False))
    if given.dry_run:
        print(table[COLUMNS].round(4).to_string(index=False))
        return
    PLACE.parent.mkdir(exist_ok=True)
    write_whole(PLACE, table[COLUMNS].round(6).to_csv(index=False).encode())
