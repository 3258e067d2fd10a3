"""One thread or every core: which decodes sooner here, timed in turns with nothing else running."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.contenders import Contender, Continuation, our_contenders
from specdec_lib.measure.latency.needed import usual_size
from specdec_lib.measure.machine import for_file_names
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import interval, named_interval, sampling_of
from specdec_lib.measure.settings.ladder_drafts import EDITIONS, LadderDrafts, racing_ladder
from specdec_lib.measure.settings.names import AUTOREGRESSIVE, TOKEN_BY_TOKEN, tree_name
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, Setting
from specdec_lib.measure.settings.usual import tree_models
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.fast.tiles import THREADS
from specdec_lib.models.processor import processor_name
from specdec_lib.workload import Ladder, Prompt, load_prompts

ENVIRONMENT = "OMP_NUM_THREADS"  # a number there is respected
TREE = "tree"
TURNS = 5  # in which every number of threads writes `TOKENS`
TOKENS = 24
SAMPLERS = (GREEDY, TOP_50)
COLUMNS = """edition temperature top_k domain prompt method setting threads tokens rounds seconds
    cores date machine""".split()


def threads_file() -> Path:
    """Where the measurement of this machine is stored."""
    return DATA / "measured" / f"threads_{for_file_names(processor_name())}.csv"


def set_threads(ladder: Ladder, threads: int) -> None:
    """Run torch and the models of a ladder on so many threads."""
    torch.set_num_threads(threads)
    for model in ladder.models:
        if isinstance(model, FastModel):
            model.run_on(threads)


def possible_threads() -> list[int]:
    """One thread and every core; the number that the environment sets, where it sets one."""
    most = torch.get_num_threads()
    return [most] if ENVIRONMENT in os.environ else sorted({1, min(most, THREADS)})


def choose_threads(ladder: Ladder, sampler: Sampler) -> str:
    """Let a ladder run on the number of threads with which a tree of its draft decodes sooner here;
    what was found, in a line.
    """
    counts = possible_threads()
    if len(counts) == 1:
        why = f"{ENVIRONMENT} says so" if ENVIRONMENT in os.environ else "there are no more"
        return f"threads: {counts[0]} ({why})"
    settings = _settings(ladder, sampler, [8, 4])
    [prompt] = load_prompts("chat", "development", 1)
    given = ladder.encode(prompt)[-ladder.max_positions // 2 :]
    took: dict[tuple[str, int], list[float]] = {}
    for turn in range(TURNS + 1):
        for one in _on_counts(ladder, settings, counts):
            made = one.run(given, TOKENS, 0)
            if turn:  # the first sets things up
                milliseconds = 1000 * made.seconds / made.timed_tokens
                took.setdefault((one.method, int(one.runtime)), []).append(milliseconds)
    times = {key: median(own) for key, own in took.items()}
    best = min(counts, key=lambda count: times[TREE, count])
    set_threads(ladder, best)
    told = "; ".join(
        f"{count}: plain {times[AUTOREGRESSIVE, count]:.2f}, tree {times[TREE, count]:.2f} ms"
        for count in counts
    )
    return f"threads: {best}, the quicker for a tree ({told} per token; --threads sets a number)"


def settle_threads(ladder: Ladder, sampler: Sampler, asked: int | None) -> None:
    """Choose the number of threads and print what was found, unless a number was asked for, or the
    models run on a GPU.
    """
    if asked is None and ladder.target.model.device.type == "cpu":
        print(choose_threads(ladder, sampler), flush=True)


def measure_threads(
    prompts: Sequence[Prompt], counts: Sequence[int], quiet: Quiet, *, tokens: int
) -> pd.DataFrame:
    """A row per edition of the target, sampler, prompt, method (plain decoding, and the tree that
    is quickest here on one thread) and number of threads.
    """
    quiet.check()
    domains = {prompt.name: prompt.domain for prompt in prompts}
    tables = []
    for edition in EDITIONS:
        ladder = racing_ladder(edition)
        for sampler in SAMPLERS:
            set_threads(ladder, 1)
            size = usual_size(ladder, sampler)
            settings = _settings(ladder, sampler, [size.budget, size.depth], size.model)
            racing = [*_on_counts(ladder, settings, counts)]
            said = f"{edition}, {sampling_of(sampler.temperature, sampler.top_k)}"
            bar = tqdm(prompts, said, mininterval=1)
            raced = race_prompts(racing, ladder, bar, tokens=tokens, quiet=quiet)
            rows = [
                {name: getattr(one, name, None) for name in COLUMNS} | {"threads": int(one.runtime)}
                for trials in raced
                for one in trials
            ]
            named = {"edition": edition, "temperature": sampler.temperature}
            named |= {"top_k": sampler.top_k or 0, "machine": processor_name()}
            table = pd.DataFrame(rows)
            tables.append(table.assign(**named, domain=table.prompt.map(domains))[COLUMNS])
    return pd.concat(tables)


def threads_beside(table: pd.DataFrame) -> pd.DataFrame:
    """Per edition, sampler, method and number of threads: milliseconds per token, and the speed ÷
    that of one thread on the same prompts, with its 95 % interval.
    """
    rows = []
    keys = ["edition", "temperature", "top_k", "method"]
    for where, group in table.groupby(keys, sort=False):
        by = group.pivot(index="prompt", columns="threads", values=["tokens", "seconds"])
        for count in by["seconds"].columns:
            own = by["tokens"][count], by["seconds"][count]
            ratio = interval(*own, by["tokens"][1], by["seconds"][1])
            head = dict(zip(keys, where, strict=True)) | {"threads": count, "prompts": len(by)}
            head["ms_per_token"] = 1000 * own[1].sum() / own[0].sum()
            rows.append(head | named_interval("ratio", ratio))
    return pd.DataFrame(rows)


def _settings(
    ladder: Ladder, sampler: Sampler, size: Sequence[int], model: str | None = None
) -> list[Setting]:
    """Plain decoding, and a tree of this budget and depth."""
    model = model or tree_models(ladder)[0]
    tree = LadderDrafts(ladder, sampler).tree(*size, model=model)
    return [
        Setting(TOKEN_BY_TOKEN, NoDraft(), sampler, method=AUTOREGRESSIVE),
        Setting(tree_name(model, *size), tree, sampler, method=TREE),
    ]


def _on_counts(
    ladder: Ladder, settings: Sequence[Setting], counts: Sequence[int]
) -> Iterator[Contender]:
    """The settings on each number of threads, which is what a contender's runtime says."""
    for count in counts:
        for one in our_contenders(ladder.target, settings, str(count)):
            yield replace(one, run=partial(_run_on, ladder, count, one.run))


def _run_on(
    ladder: Ladder,
    threads: int,
    run: Callable[[tuple[int, ...], int, int], Continuation],
    prompt: tuple[int, ...],
    count: int,
    seed: int,
) -> Continuation:
    set_threads(ladder, threads)
    return run(prompt, count, seed)
