"""A small sweep for tests of what is kept, and what of it is decoded."""

import pandas as pd
import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure import replaying
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

LENGTH = {"max_new_tokens": 5, "progress": False}


def settings(ladder: Ladder) -> list[Setting]:
    return [
        Setting("none", NoDraft()),
        Setting("copies", ladder.max_gram),
        Setting("chain", ChainDraft(ladder.draft, 3), Sampler(1.0, top_k=50)),
    ]


def without_seconds(table: pd.DataFrame) -> pd.DataFrame:
    """A sweep's table without its measured times: what is the same in every run."""
    return table.drop(columns=table.filter(regex="seconds"))


def assert_same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Two tables of sweeps are equal but for their measured times."""
    assert list(one) == list(other)
    pd.testing.assert_frame_equal(without_seconds(one), without_seconds(other))


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list:
    """A list that grows by one with each generation that a sweep decodes."""
    real, made = replaying.decode, []
    monkeypatch.setattr(replaying, "decode", lambda *a, **b: made.append(1) or real(*a, **b))
    return made
