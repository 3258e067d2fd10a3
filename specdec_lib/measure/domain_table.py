"""`specdec measure table`: tokens per round and acceptance by domain and sampler, on the held-out
prompts, counted along the target's stored texts; into data/measured and the README.

Every tenth prompt is really decoded too. A run that was interrupted goes on where it was.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.cluster import Cluster, LadderRecipe, opened
from specdec_lib.measure.commands.commandline import parse_measurement, write_csv
from specdec_lib.measure.commands.pages import README, replace_marked
from specdec_lib.measure.ratios import summarise_rounds, with_interval, with_sampling
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.settings.staged import staged_settings
from specdec_lib.measure.settings.table import table_settings
from specdec_lib.measure.target_text import every_domain, stored_texts
from specdec_lib.workload import DOMAINS, Ladder, Prompt

LADDER = LadderRecipe(device="cpu", runtime="fast")
PLACE = DATA / "measured" / "tokens_per_round.csv"
STAGED = PLACE.with_name("staged.csv")
EVERY, DECODED_TOKENS = 10, 64  # of so many prompts one is really decoded, up to so many tokens
COUNTS = ["tokens", "rounds", "proposed", "accepted", "tried", "draft_passes", "middle_passes"]
KEYS, ALL = ["domain", "sampling", "draft"], "all"
COLUMNS = """domain sampling draft tokens_per_round tokens_per_round_low tokens_per_round_high
    acceptance_rate acceptance_rate_low acceptance_rate_high draft_passes_per_round
    middle_passes_per_round prompts tokens repetition decoded agreeing""".split()


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    given = parse_measurement("measure table", __doc__, [PLACE, README], arguments, 60, counts=True)
    with opened(given.scheduler, LADDER) as cluster:
        prompts, run = held_out_sweep(table_settings, given.limit, cluster)
        few = prompts[::EVERY]
        rows = run(prompts, max_new_tokens=256)
        replayed = run(few, max_new_tokens=DECODED_TOKENS)
        real = run(few, max_new_tokens=DECODED_TOKENS, texts=())
    agrees = (real[COUNTS].fillna(0) == replayed[COUNTS].fillna(0)).all(axis=1)
    table = summarise_domains(with_domain(rows), with_domain(replayed).assign(agrees=agrees))
    text = markdown(table)
    print(text)
    write_csv(table, PLACE, 6)
    replace_marked("table", text)


def measure_staged(arguments: list[str] | None = None) -> None:
    """Run `specdec measure staged`; an interrupted run goes on where it was."""
    about = f"run notebook 03's sweep on held-out prompts of every domain, into {STAGED}"
    given = parse_measurement("measure staged", about, [STAGED], arguments, 8, counts=True)
    with opened(given.scheduler, LADDER) as cluster:
        prompts, run = held_out_sweep(staged_settings, given.limit, cluster)
        rows = with_domain(run(prompts))
    timed = rows.filter(regex="seconds")  # along texts the target takes none
    write_csv(rows.drop(columns=["sampling", "stop", *timed]), STAGED, 5)


def held_out_sweep(
    settings: Callable[[Ladder], list[Setting]], limit: int, cluster: Cluster | None = None
) -> tuple[list[Prompt], Callable[..., pd.DataFrame]]:
    """So many held-out prompts of each domain, and `sweep` of these settings of the ladder, along
    the stored texts, its rows kept in the cache; on the workers of a cluster, if one is given.
    """
    prompts = every_domain("held-out", limit)
    ladder = LADDER.load()
    run = partial(sweep, settings(ladder), ladder=ladder, texts=stored_texts(), cluster=cluster)
    return prompts, partial(run, keep=cache_folder() / "sweeps")


def with_domain(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a sweep with columns `sampling` and `domain`."""
    return with_sampling(table).assign(domain=table.prompt.str.partition("/")[0])


def summarise_domains(rows: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """A row per domain (and all), sampler and draft: ratios with 95 % intervals over prompts,
    passes per round, and how many generations were really decoded and agree.

    checks    `KEYS`, and whether decoding gave the counts of the replay, as `agrees`
    """
    rows, checks = (
        pd.concat([*(one[one.domain == name] for name in DOMAINS), one.assign(domain=ALL)])
        for one in (rows, checks)
    )
    found = summarise_rounds(rows, KEYS).set_index(KEYS)
    sums = rows.groupby(KEYS)[["tokens", "rounds", "draft_passes", "middle_passes"]].sum()
    for name in ("draft_passes", "middle_passes"):
        found[f"{name}_per_round"] = sums[name] / sums.rounds
    agrees = checks.groupby(KEYS).agrees.agg(decoded="size", agreeing="sum")
    agrees = agrees.reindex(found.index, fill_value=0)
    return found.assign(tokens=sums.tokens).join(agrees).reset_index()[COLUMNS]


def markdown(table: pd.DataFrame) -> str:
    """The summary as the README shows it: all domains by sampler, then each domain."""
    samplings, whole = list(dict.fromkeys(table.sampling)), table[table.domain == ALL]
    first = whole[whole.draft == whole.draft.iloc[0]]
    texts = "; ".join(
        f"{row.sampling}: {row.tokens:,.0f} tokens, repetition {row.repetition:.2f}"
        for row in first.itertuples()
    )
    heads = [f"{sampling}: tokens per round | acceptance rate" for sampling in samplings]
    greedy = table[(table.sampling == samplings[0]) & (table.domain != ALL)]
    lines = [
        f"Measured by `make table` on {first.prompts.iloc[0]:.0f} held-out prompts, a quarter of"
        " each domain, along the target's texts of at most 256 tokens in float32"
        f" ({texts}). Intervals are 95 %, over prompts. Of"
        f" {whole.decoded.sum():.0f} generations that were really decoded,"
        f" {whole.agreeing.sum():.0f} have the very counts.",
        "",
        f"| draft | {' | '.join(heads)} |",
        f"|---|{'---|---|' * len(samplings)}",
        *_lines(whole, "tokens_per_round", "acceptance_rate"),
        "",
        f"| tokens per round, {samplings[0]} | {' | '.join(DOMAINS)} |",
        f"|---|{'---|' * len(DOMAINS)}",
        *_lines(greedy, "tokens_per_round"),
    ]
    return "\n".join(lines)


def _lines(table: pd.DataFrame, *names: str) -> Iterator[str]:
    """A line per draft, with a cell per row and name."""
    ends = [[name, f"{name}_low", f"{name}_high"] for name in names]
    for draft, own in table.groupby("draft", sort=False):
        cells = [with_interval(*row[three]) for _, row in own.iterrows() for three in ends]
        yield f"| {draft} | {' | '.join(cells)} |"
