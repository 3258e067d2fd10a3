"""`specdec measure acceptance`: holds theory against measurement at full size, for notebook 02.

A wide tree on 120 development code prompts predicts what a dozen other trees yield on 120 held-out
ones, into data/measured/predicted.csv. Each prompt is decoded once; its ranks settle every round of
every fixed tree (see `replay.shape_rounds`).
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
    predict_tokens,
    predicted_shapes,
    replayed_guesses,
    replayed_tokens,
)
from specdec_lib.measure.replay.shape_rounds import ranks_by_temperature
from specdec_lib.measure.sweep.grid import Setting, generations
from specdec_lib.workload import load_ladder, load_prompts

PLACE = DATA / "measured" / "predicted.csv"
PROMPTS = 120  # of each split
QUICK, WIDE = (4, 2, 1, 1), (6, 3, 2, 1, 1, 1)
COLUMNS = ["temperature", "name", "predictor", "predicted", "measured", "low", "high"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    import pandas as pd

    Parser("measure acceptance", __doc__.partition(": ")[2]).parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    draft = TreeDraft(ladder.draft, widths=QUICK)
    settings = [Setting("", draft, Sampler(temperature)) for temperature in (0.0, 1.0)]
    known, unseen = (
        ranks_by_temperature(
            generations(settings, load_prompts("code", split, PROMPTS), ladder), draft
        )
        for split in ("development", "held-out")
    )
    tables = []
    for temperature, texts in known.items():
        trees = predicted_shapes(texts)
        guesses = replayed_guesses(Shape.of_widths(WIDE), texts)
        measured = replayed_tokens(trees, unseen[temperature])
        compared = compare_predictions(predict_tokens(trees, guesses, texts), measured)
        tables.append(compared.assign(temperature=temperature))
    table = pd.concat(tables)
    print(errors(table, ["temperature", "predictor"]).round(4).to_string(index=False))
    PLACE.parent.mkdir(exist_ok=True)
    write_whole(PLACE, table[COLUMNS].round(6).to_csv(index=False).encode())
