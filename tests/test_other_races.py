"""Verdicts by machine and edition are those of the race that each column names."""

import pandas as pd
import pytest

from specdec_lib.measure.idea_tables import raced_machines, stored_ideas
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.scorecard import evidence_raced
from specdec_lib.measure.scorecard.claims import score
from specdec_lib.measure.scorecard.other_races import raced_verdicts
from specdec_lib.measure.scorecard.reading import raced_claims, read_claims
from specdec_lib.workload import load_ladder


@pytest.fixture(scope="module")
def models():
    return load_ladder(device="cpu")


def test_the_readme_machine_in_float32_is_what_the_scorecard_has(models):
    whole = score(read_claims(models)).set_index(["item", "claim"])
    own = score(raced_claims(models, RACED)).set_index(["item", "claim"])
    assert len(own) > 12
    pd.testing.assert_frame_equal(own, whole.loc[own.index], check_dtype=False)


def test_every_machine_and_edition_has_a_column_and_what_was_not_raced_is_empty(models):
    found = raced_verdicts(models)
    assert set(found) == {("", "paper")} | {
        (machine, edition) for machine in raced_machines() for edition in ("float32", "int8")
    }
    for machine in raced_machines():
        raced = set(stored_ideas(machine).family)
        for item, claim in found.index:
            family = next(one for one in ("embedded", "published") if one in claim)
            for edition in ("float32", "int8"):
                cell = found.loc[(item, claim), (machine, edition)]
                assert bool(cell) == (f"{family} prompts" in raced), (machine, claim)


def test_another_race_gives_another_verdict(models, monkeypatch):
    before = raced_verdicts(models)
    real = stored_ideas

    def slower(machine):
        table = real(machine)
        off = (
            (machine != RACED)
            & (table.method == "speculative decoding")
            & (table.edition == "int8")
        )
        return table.assign(seconds=table.seconds * (1 + 9 * off))

    monkeypatch.setattr(evidence_raced, "stored_ideas", slower)
    after = raced_verdicts(models)
    changed = [column for column in before if not before[column].equals(after[column])]
    assert changed and all(m != RACED and edition == "int8" for m, edition in changed)
    opposite = [table[changed[0]].str.contains("opposite") for table in (before, after)]
    assert not opposite[0].equals(opposite[1])
