"""A small sweep for tests of what is kept."""

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder

LENGTH = {"max_new_tokens": 5, "progress": False}


def settings(ladder: Ladder) -> list[Setting]:
    return [
        Setting("none", NoDraft()),
        Setting("copies", ladder.max_gram),
        Setting("chain", ChainDraft(ladder.draft, 3), Sampler(1.0, top_k=50)),
    ]


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Two tables of sweeps are equal but for their seconds."""
    counts = (table.drop(columns=table.filter(regex="seconds$")) for table in (one, other))
    pd.testing.assert_frame_equal(*counts)
