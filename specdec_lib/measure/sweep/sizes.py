"""The sizes of a ladder's models, beside those of the papers' models of the same place."""

import math

import pandas as pd

from specdec_lib.measure.sweep.traffic import model_shape
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list

STAGED = {"target": "oracle parameters, nominal", "draft": "draft parameters"}
CASCADE = {"target": "t5-xxl", "middle": "t5-base", "draft": "t5-small"}
PARTS = ("a_pass", "staged_paper", "cascade_paper")


def size_table(ladder: Ladder) -> pd.DataFrame:
    """A row per model of the ladder, the largest first, in millions of parameters: model; layers,
    without embeddings; head, the output matrix, of a cut one the frequent tokens' rows; a_pass, the
    sum; staged_paper and cascade_paper, the models of that place there, with embeddings (or NaN);
    and the share of the target's of these three.  Raises ValueError as `model_shape` does.
    """
    prices, rows = price_list("ms"), []
    for model in ladder.models:
        shape, name = model_shape(model), model.name
        layers = ladder.card["models"][name]["parameters"] / 1e6
        head = shape.vocabulary * shape.width / 1e6
        staged = number("staged.text.setup", STAGED[name]) if name in STAGED else math.nan
        rows.append((name, layers, head, layers + head, staged, prices[CASCADE[name]]))
    found = pd.DataFrame(rows, columns=["model", "layers", "head", *PARTS])
    return found.assign(**{f"{part}_share": found[part] / found[part].iloc[0] for part in PARTS})
