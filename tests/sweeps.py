"""A small sweep for tests of what is kept, and what of it is decoded."""

import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.sweep import grid
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder

LENGTH = {"max_new_tokens": 5, "progress": False}


def settings(ladder: Ladder) -> list[Setting]:
    return [
        Setting("none", NoDraft()),
        Setting("copies", ladder.max_gram),
        Setting("chain", ChainDraft(ladder.draft, 3), Sampler(1.0, top_k=50)),
    ]


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list:
    """A list that grows by one with each generation that a sweep decodes."""
    real, made = grid.decode, []
    monkeypatch.setattr(grid, "decode", lambda *a, **b: made.append(1) or real(*a, **b))
    return made
