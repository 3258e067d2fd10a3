"""What the race of ideas says of both papers' claims by machine and edition of the target."""

import pandas as pd

from specdec_lib.measure.idea_tables import EXACT, raced_machines
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import with_interval
from specdec_lib.measure.scorecard.claims import UNTESTED, score
from specdec_lib.measure.scorecard.reading import raced_claims
from specdec_lib.measure.settings.ladder_drafts import EDITIONS
from specdec_lib.workload import Ladder


def raced_verdicts(ladder: Ladder) -> pd.DataFrame:
    """A row per claim that a race of ideas decides, as printed, and a column per machine and
    edition: our ratio with its 95 % interval, and the verdict; empty where nothing was raced.
    """
    found = {}
    printed = score(raced_claims(ladder, RACED)).set_index(["item", "claim"]).paper_value
    found["", "paper"] = printed.map("{:.2f}".format)
    for machine in raced_machines():
        for edition in EDITIONS:
            scores = score(raced_claims(ladder, machine, edition)).set_index(["item", "claim"])
            said = [
                "" if verdict == UNTESTED else f"{with_interval(*ends)} {verdict}"
                for *ends, verdict in scores[["ours", "low", "high", "verdict"]].to_numpy()
            ]
            found[machine, EXACT.get(edition, edition)] = pd.Series(said, scores.index)
    return pd.DataFrame(found)
