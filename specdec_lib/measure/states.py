"""Which stored tables are of today's code: each clocked one says the state it was measured in."""

import pandas as pd

from specdec_lib.core.files import DATA
from specdec_lib.measure.fingerprints import decoding

CLOCKED = """race defaults ideas passes threads latency speeds sweeps ledger sizes learning regret
    rivals walltime watched"""
TODAY, OLDER, UNKNOWN = "today's", "older", "unknown: it says no state"


def stored_states() -> pd.DataFrame:
    """A row per clocked table in data/measured: table, state (that it says), date, age (whether
    that is today's state).
    """
    rows = []
    for path in sorted((DATA / "measured").glob("*.csv")):
        if not path.stem.startswith(tuple(CLOCKED.split())):
            continue
        table = pd.read_csv(path)
        states = sorted(set(table["state"])) if "state" in table else []
        age = UNKNOWN if not states else TODAY if states == [decoding()] else OLDER
        dates = sorted(set(table["date"])) if "date" in table else []
        said = {"state": ", ".join(states), "date": dates[-1] if dates else "", "age": age}
        rows.append({"table": path.name, **said})
    return pd.DataFrame(rows)
