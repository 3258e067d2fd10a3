"""`specdec measure acceptance`: holds theory against measurement at full size, for notebook 02.

A wide tree on development prompts of every domain predicts what a dozen other trees yield on
held-out ones, into data/measured/predicted.csv.
"""

import pandas as pd
import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance import prediction
from specdec_lib.measure.sweep.grid import Setting, generations
from specdec_lib.measure.texts import every_domain, known_texts
from specdec_lib.workload import SPLITS, load_ladder

PLACE = DATA / "measured" / "predicted.csv"
QUICK, WIDE = (4, 2, 1, 1), (6, 3, 2, 1, 1, 1)
COLUMNS = ["temperature", "name", "predictor", "predicted", "measured", "low", "high", "prompts"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    about = __doc__.partition(": ")[2].partition("\n\n")[0]
    parser = Parser("measure acceptance", about, writes=[PLACE])
    parser.add_common("--limit", 30, "of each domain and split")
    limit = parser.parse_args(arguments).limit
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    draft, tables = TreeDraft(ladder.draft, widths=QUICK), []
    settings = [Setting("", draft, Sampler(temperature)) for temperature in (0.0, 1.0)]
    texts = known_texts([one.sampler for one in settings], seed=0)
    known, unseen = (
        prediction.ranks_by_temperature(generations(settings, prompts, ladder, texts=texts), draft)
        for prompts in (every_domain(split, limit) for split in SPLITS)
    )
    for temperature, taken in known.items():
        trees = prediction.predicted_shapes(taken)
        guesses = prediction.replayed_guesses(Shape.of_widths(WIDE), taken)
        predicted = prediction.predict_tokens(trees, guesses, taken)
        measured = prediction.replayed_tokens(trees, unseen[temperature])
        compared = prediction.compare_predictions(predicted, measured)
        tables.append(compared.assign(temperature=temperature))
    table = pd.concat(tables)
    print(prediction.errors(table, ["temperature", "predictor"]).round(4).to_string(index=False))
    write_csv(table[COLUMNS], PLACE, 6)
