"""`specdec measure table`: tokens per round and acceptance by domain and sampler, on the held-out
prompts, counted along the target's stored texts; into data/measured and the README.

Every tenth prompt is really decoded too. A run that was interrupted goes on where it was.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, README, cache_folder, replace_marked
from specdec_lib.measure.intervals import bootstrap, named_interval, with_interval
from specdec_lib.measure.sweep.ratios import with_sampling
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.texts import Texts, every_domain
from specdec_lib.workload import DOMAINS, Prompt

PLACE = DATA / "measured" / "tokens_per_round.csv"
LADDER = Recipe("specdec_lib.workload:load_ladder", {"device": "cpu", "runtime": "fast"})
EVERY, DECODED_TOKENS = 10, 64  # of so many prompts one is really decoded, up to so many tokens
COUNTS = ["tokens", "rounds", "proposed", "accepted", "tried", "draft_passes", "middle_passes"]
ALL = "all"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    about = __doc__.partition(": ")[2].partition("\n\n")[0]
    parser = Parser("measure table", about, writes=[PLACE, README])
    prompts = parse_prompts(parser, arguments, limit=60)
    table = summarise_domains(count_texts(prompts), check_counts(prompts[::EVERY]))
    text = markdown(table)
    print(text)
    write_csv(table, PLACE, 6)
    replace_marked("table", text)


def parse_prompts(parser: Parser, arguments: list[str] | None, *, limit: int) -> list[Prompt]:
    """The held-out prompts that the option --limit asks for."""
    parser.add_common("--limit", limit, "of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    return every_domain("held-out", given.limit)


def count_texts(
    prompts: list[Prompt], *, study: str = "table", max_new_tokens: int = 256
) -> pd.DataFrame:
    """The rows of `stacks:…_settings`, counted along the stored texts and kept in the cache."""
    table = _kept_sweep(study, prompts, max_new_tokens, Texts.stored())
    return with_sampling(table).assign(domain=table.prompt.str.partition("/")[0])


def check_counts(prompts: list[Prompt]) -> pd.DataFrame:
    """Whether decoding gives the counts of the replay: sampling, draft, domain, prompt, agrees."""
    real = _kept_sweep("table", prompts, DECODED_TOKENS)
    replayed = count_texts(prompts, max_new_tokens=DECODED_TOKENS)
    counts = (real[COUNTS].fillna(0) == replayed[COUNTS].fillna(0)).all(axis=1)
    return replayed[["sampling", "draft", "domain", "prompt"]].assign(agrees=counts)


def _kept_sweep(
    study: str, prompts: list[Prompt], max_new_tokens: int, texts: Sequence[Texts] = ()
) -> pd.DataFrame:
    settings = Recipe(f"specdec_lib.measure.sweep.stacks:{study}_settings")
    limits = {"max_new_tokens": max_new_tokens, "texts": texts}
    return sweep(settings, prompts, LADDER, keep=cache_folder() / study, **limits)


def summarise_domains(rows: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """A row per domain (and all), sampler and draft: ratios with 95 % intervals over prompts,
    passes per round, and how many generations were really decoded and agree.
    """
    rows, checks = (
        pd.concat([*(one[one.domain == name] for name in DOMAINS), one.assign(domain=ALL)])
        for one in (rows, checks)
    )
    keys, found = ["domain", "sampling", "draft"], []
    decoded = {key: agrees for key, agrees in checks.groupby(keys).agrees}
    none = pd.Series(dtype=bool)
    for key, group in rows.groupby(keys, sort=False):
        group, agrees = group.fillna(0), decoded.get(key, none)
        rounds, weights = group.rounds.sum(), group.tokens
        found.append(
            dict(zip(keys, key, strict=True))
            | named_interval("tokens_per_round", bootstrap(group.tokens, group.rounds))
            | named_interval("acceptance_rate", bootstrap(group.accepted, group.tried))
            | {"draft_passes_per_round": group.draft_passes.sum() / rounds}
            | {"middle_passes_per_round": group.middle_passes.sum() / rounds}
            | {"prompts": len(group), "tokens": int(group.tokens.sum())}
            | {"repetition": float(np.average(group.repetition, weights=weights))}
            | {"decoded": len(agrees), "agreeing": int(agrees.sum())}
        )
    return pd.DataFrame(found)


def markdown(table: pd.DataFrame) -> str:
    """The summary as the README shows it: all domains by sampler, then each domain."""
    samplings, whole = list(dict.fromkeys(table.sampling)), table[table.domain == ALL]
    first = whole[whole.draft == whole.draft.iloc[0]].set_index("sampling")
    texts = "; ".join(
        f"{sampling}: {row.tokens:,.0f} tokens, repetition {row.repetition:.2f}"
        for sampling, row in first.iterrows()
    )
    heads = [f"{sampling}: tokens per round | acceptance rate" for sampling in samplings]
    greedy = table[(table.sampling == samplings[0]) & (table.domain != ALL)]
    lines = [
        f"Measured by `make table` on {first.prompts.iloc[0]:.0f} held-out prompts, a quarter of"
        " each domain, along the target's texts of at most 256 tokens in float32"
        f" ({texts}). Intervals are 95 %, by bootstrap over prompts. Of"
        f" {whole.decoded.sum():.0f} generations that were really decoded,"
        f" {whole.agreeing.sum():.0f} have the very counts.",
        "",
        f"| draft | {' | '.join(heads)} |",
        f"|---|{'---|---|' * len(samplings)}",
        *_lines(whole, "sampling", samplings, ("tokens_per_round", "acceptance_rate")),
        "",
        f"| tokens per round, {samplings[0]} | {' | '.join(DOMAINS)} |",
        f"|---|{'---|' * len(DOMAINS)}",
        *_lines(greedy, "domain", DOMAINS, ("tokens_per_round",)),
    ]
    return "\n".join(lines)


def _lines(
    table: pd.DataFrame, column: str, values: Sequence[str], names: Sequence[str]
) -> list[str]:
    """A line per draft, with cells for each value of a column."""
    keyed, lines = table.set_index(["draft", column]), []
    for draft in dict.fromkeys(table.draft):
        own = [(keyed.loc[draft, one], name) for one in values for name in names]
        ends = ([row[f"{name}{end}"] for end in ("", "_low", "_high")] for row, name in own)
        lines.append(f"| {draft} | {' | '.join(with_interval(*one) for one in ends)} |")
    return lines
