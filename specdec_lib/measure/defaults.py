"""The draft that nobody tuned, by the clock, on any prompts: with its off-switch and without, and
beside its parts, by kind of prompt. An interrupted run goes on.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency.needed import usual_size
from specdec_lib.measure.machine import machine_name, stored_clocked
from specdec_lib.measure.pages import RESULTS, replace_marked
from specdec_lib.measure.race_table import MEASURED, RACED
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import ALL, sampling_of, summarise_speeds, with_interval
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.settings.ladder_drafts import EDITIONS, racing_ladder
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import GREEDY, TOP_50
from specdec_lib.measure.settings.usual import DEFAULT, UNSWITCHED, Size, usual_settings
from specdec_lib.measure.trial import trial_table
from specdec_lib.workload import Ladder, Prompt

EARLIER = "intel-r-xeon-r-processor-amx-int8-1-threads"  # which timed an earlier default
PAGES = {"defaults": (RESULTS, RACED), "defaults_earlier": (RESULTS, EARLIER)}
SAMPLERS = (GREEDY, TOP_50)
TOKENS = 64  # new ones per prompt, at most
COLUMNS = """edition sampling domain prompt draft tokens rounds seconds model budget depth floor
    deepen needed hoped length copying repetition load machine""".split()


def measure_defaults(
    prompts: Sequence[Prompt], editions: Sequence[str] = tuple(EDITIONS), *, tokens: int = TOKENS
) -> pd.DataFrame:
    """A row per edition of the target, sampler, prompt and draft of `usual_settings`: its rounds,
    and the seconds of them without the pass over the prompt.
    """
    return pd.concat(time_defaults(prompts, edition, tokens) for edition in editions)


def time_defaults(prompts: Sequence[Prompt], edition: str, tokens: int) -> pd.DataFrame:
    """The rows of one edition; drafts are in the int8 one, which is quicker."""
    ladder = racing_ladder(edition)
    same = fingerprint(machine_name(), edition, tokens, ladder)
    kept = RowCache(cache_folder() / "defaults" / same)
    domains = {prompt.name: prompt.domain for prompt in prompts}
    tables = []
    for sampler in SAMPLERS:
        sampling = sampling_of(sampler.temperature, sampler.top_k)
        folder = kept.folder and kept.folder / f"T{sampler.temperature:g}"
        [row] = RowCache(folder).rows("size", partial(_size, ladder, sampler))
        racing = our_contenders(ladder.target, usual_settings(ladder, sampler, Size(**row)))
        bar = tqdm(prompts, f"{edition}, {sampling}", mininterval=1)
        raced = race_prompts(racing, ladder, bar, tokens=tokens, folder=folder)
        table = trial_table(one for trials in raced for one in trials)
        named = {"edition": edition, "sampling": sampling, "machine": machine_name(), **row}
        tables.append(table.assign(**named, domain=table.prompt.map(domains)))
    return pd.concat(tables).rename(columns={"setting": "draft"})[COLUMNS]


def _size(ladder: Ladder, sampler: Sampler) -> list[Row]:
    """The sizes of the tree and of the copies, by rounds on this machine."""
    return [usual_size(ladder, sampler)._asdict()]


def renew_pages(place: Path) -> None:
    """Write the tables of the page of results anew that are of the measurements stored there."""
    for mark, (page, machine) in PAGES.items():
        if place.resolve() in places_of(machine).values():
            replace_marked(mark, page_table(stored_defaults(machine)), page)


def summarise_defaults(table: pd.DataFrame) -> pd.DataFrame:
    """Per edition, sampler, domain (and all of them) and draft: tokens per round, milliseconds per
    token, and the speed ÷ plain decoding's on the same prompts, with 95 % intervals over prompts.
    """
    return summarise_speeds(table, ["edition", "sampling"], plain=AUTOREGRESSIVE)


def slowest_kinds(table: pd.DataFrame, draft: str) -> pd.DataFrame:
    """Per edition and sampler the domain in which a draft gains least, of `summarise_defaults`."""
    own = table[(table.draft == draft) & (table.domain != ALL)]
    least = own.groupby(["edition", "sampling"], sort=False).speed_up.idxmin()
    return own.loc[least].reset_index(drop=True)


def off_switch_gains(machine: str = "") -> pd.DataFrame:
    """The speed of the draft with its off-switch ÷ without it, on the same published prompts, as
    `figures.off_switches` takes it; the machine is named, and may lack it, as in `stored_clocked`.
    """
    table = stored_clocked("defaults_published", machine, verb="defaults")
    both = table[table.draft.isin([UNSWITCHED, DEFAULT])]
    found = summarise_speeds(both, ["edition", "sampling"], plain=UNSWITCHED)
    return found[found.draft == DEFAULT].assign(machine=table.machine.iloc[0])


def defaults_file(machine: str, *, published: bool = False) -> Path:
    """Where the measurements of a machine are stored; published prompts are not in the
    repository.
    """
    name = "defaults_published" if published else "defaults"
    return MEASURED / f"{name}_{machine}.csv"


def places_of(machine: str) -> dict[str, Path]:
    """`defaults_file` by the prompts that a table is of."""
    names = {"held-out prompts": False, "published prompts": True}
    return {name: defaults_file(machine, published=published) for name, published in names.items()}


def stored_defaults(machine: str = RACED) -> dict[str, pd.DataFrame]:
    """`summarise_defaults` of the stored measurements, by the prompts that they are of."""
    places = {name: place for name, place in places_of(machine).items() if place.exists()}
    tables = {name: pd.read_csv(place) for name, place in places.items()}
    return {name: summarise_defaults(table) for name, table in tables.items()}


def page_table(tables: dict[str, pd.DataFrame]) -> str:
    """Summaries as the page of results shows them: a line per kind of prompts, edition and sampler,
    a cell per draft.
    """
    drafts = [one for one in next(iter(tables.values())).draft.unique() if one != AUTOREGRESSIVE]
    heads = ["prompts", "target", "sampling", *drafts, f"{DEFAULT}: least of a kind"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, table in tables.items():
        ends = table[["speed_up", "speed_up_low", "speed_up_high"]].itertuples(index=False)
        shown = table.assign(cell=[with_interval(*one) for one in ends])
        least = slowest_kinds(shown, DEFAULT)
        for one in least.itertuples():
            asked = (shown.edition == one.edition) & (shown.sampling == one.sampling)
            whole = shown[asked & (shown.domain == ALL)].set_index("draft")
            of = f"{whole.prompts.iloc[0]} {name} | {one.edition} | {one.sampling}"
            cells = " | ".join(whole.cell[drafts])
            lines.append(f"| {of} | {cells} | {one.domain} {one.cell} |")
    return "\n".join(lines)
