"""Tokens per round and acceptance by domain and sampler, counted along the target's texts. Every
tenth prompt is really decoded too. A run that was interrupted goes on where it was.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pandas as pd

from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.cluster import Cluster, LadderRecipe
from specdec_lib.measure.ratios import ALL, summarise_rounds, with_interval, with_sampling
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.settings.staged import staged_settings
from specdec_lib.measure.settings.table import table_settings
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.workload import DOMAINS, Ladder, Prompt

LADDER = LadderRecipe(device="cpu", runtime="fast")
PLACE = DATA / "measured" / "tokens_per_round.csv"
STAGED = PLACE.with_name("staged.csv")
# of so many prompts one is really decoded, up to so many tokens
EVERY = 10
DECODED_TOKENS = 64
COUNTS = ["tokens", "rounds", "proposed", "accepted", "tried", "draft_passes", "middle_passes"]
KEYS = ["domain", "sampling", "draft"]
COLUMNS = """domain sampling draft tokens_per_round tokens_per_round_low tokens_per_round_high
    acceptance_rate acceptance_rate_low acceptance_rate_high draft_passes_per_round
    middle_passes_per_round prompts tokens repetition decoded agreeing""".split()


def measure_domains(prompts: Sequence[Prompt], cluster: Cluster | None = None) -> pd.DataFrame:
    """`summarise_domains` of `table_settings` on these prompts, every tenth really decoded too."""
    run = text_sweep(table_settings, prompts, cluster)
    few = prompts[::EVERY]
    rows = run(prompts, max_new_tokens=256)
    replayed = run(few, max_new_tokens=DECODED_TOKENS)
    real = run(few, max_new_tokens=DECODED_TOKENS, texts=())
    agrees = (real[COUNTS].fillna(0) == replayed[COUNTS].fillna(0)).all(axis=1)
    checks = with_domain(replayed, prompts).assign(agrees=agrees)
    return summarise_domains(with_domain(rows, prompts), checks)


def measure_staged(prompts: Sequence[Prompt], cluster: Cluster | None = None) -> pd.DataFrame:
    """The rows of `staged_settings` on these prompts, without seconds: along a text the target
    takes none.
    """
    rows = with_domain(text_sweep(staged_settings, prompts, cluster)(prompts), prompts)
    timed = rows.filter(regex="seconds")
    return rows.drop(columns=["sampling", "stop", *timed])


def text_sweep(
    settings: Callable[[Ladder], list[Setting]],
    prompts: Sequence[Prompt],
    cluster: Cluster | None = None,
) -> Callable[..., pd.DataFrame]:
    """`sweep` of these settings of the ladder along what the target writes after prompts, its rows
    kept in the cache; on the workers of a cluster, if one is given.
    """
    ladder = LADDER.load()
    tried = settings(ladder)
    samplers = list(dict.fromkeys(one.sampler for one in tried))
    texts = texts_after(prompts, samplers, ladder, cluster=cluster)
    keep = cache_folder() / "sweeps"
    return partial(sweep, tried, ladder=ladder, texts=texts, cluster=cluster, keep=keep)


def with_domain(table: pd.DataFrame, prompts: Sequence[Prompt]) -> pd.DataFrame:
    """The rows of a sweep of prompts with columns `sampling` and `domain`."""
    domains = {prompt.name: prompt.domain for prompt in prompts}
    return with_sampling(table).assign(domain=table.prompt.map(domains))


def summarise_domains(rows: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """A row per domain (and all), sampler and draft: ratios with 95 % intervals over prompts,
    passes per round, and how many generations were really decoded and agree.

    checks    `KEYS`, and whether decoding gave the counts of the replay, as `agrees`
    """
    domains = [*rows.domain.unique()]
    rows, checks = (
        pd.concat([*(one[one.domain == name] for name in domains), one.assign(domain=ALL)])
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
    """The summary as the page of results shows it: all domains by sampler, then each domain."""
    samplings = list(dict.fromkeys(table.sampling))
    whole = table[table.domain == ALL]
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
