"""What the race of ideas says of both papers' claims: paired ratios of speeds, one idea apart."""

import pandas as pd

from specdec_lib.measure.idea_tables import stored_ideas
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import interval, with_interval
from specdec_lib.measure.scorecard.evidence import Evidence
from specdec_lib.measure.settings.ideas import VERTICAL
from specdec_lib.workload import Ladder


def raced_ideas(
    temperature: str = "",
    family: str = "",
    domain: str = "",
    *,
    machine: str = RACED,
    edition: str = "exact",
) -> pd.DataFrame:
    """The stored rows of a machine and an edition of the target: all, or those of a temperature, a
    family of prompts and a domain.
    """
    found = stored_ideas(machine).query("edition == @edition")
    if temperature:
        found = found[found.temperature == float(temperature)]
    if family:
        found = found[found.family == family]
    return found[found.domain == domain] if domain else found


def raced_idea(
    ladder: Ladder,
    method: str,
    base: str,
    temperature: str,
    family: str,
    domain: str = "",
    *,
    machine: str = RACED,
    edition: str = "exact",
) -> Evidence:
    """Tokens per second of a method ÷ another's on the prompts of a family, the settings of both,
    and as the fact `alone` those of the vertical cascade ÷ the other's; nothing where the family,
    or its domain, was not raced.
    """
    rows = raced_ideas(temperature, family, domain, machine=machine, edition=edition)
    if rows.empty:
        return Evidence(facts=dict.fromkeys(("own_setting", "base_setting", "alone"), "not raced"))
    both = rows.pivot(index="prompt", columns="method", values=["tokens", "seconds"])
    own, other, alone = (
        (both["tokens"][name], both["seconds"][name]) for name in (method, base, VERTICAL)
    )
    settings = rows.drop_duplicates("method").set_index("method").setting
    facts = {"own_setting": settings[method], "base_setting": settings[base]}
    facts["alone"] = with_interval(*interval(*alone, *other))
    return Evidence(*interval(*own, *other), len(both), facts)


OF_RACE = {"raced_idea": raced_idea}
