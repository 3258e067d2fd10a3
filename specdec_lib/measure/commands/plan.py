"""`specdec plan`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import check_output
from specdec_lib.measure.options import (
    ChosenThreads,
    Device,
    Dtype,
    MaxNewTokens,
    ModelFolder,
    OtherPrices,
    Prompts,
    Runtime,
    Scheduler,
    Seed,
    Temperature,
    Tokenizer,
    TopK,
    place,
    use_threads,
)


def plan(
    *,
    target: ModelFolder = None,
    draft: ModelFolder = None,
    tokenizer: Tokenizer = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    runtime: Annotated[Runtime, Parameter(help="of our loop: auto is fast if it can")] = "auto",
    threads: ChosenThreads = None,
    prompts: Prompts = "chat",
    limit: Annotated[int, Parameter(help="the first so many prompts of each split")] = 10,
    max_new_tokens: MaxNewTokens = 64,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    seed: Seed = 0,
    settings: Annotated[int, Parameter(help="of each method, counted on development prompts")] = 6,
    prices: OtherPrices = None,
    json: Annotated[Path, place("where the setting is written")] = Path("plan.json"),
    scheduler: Scheduler = None,
) -> None:
    """Find the fastest setting for a pair of models on this machine and these prompts, say whether
    speculation pays at all, and write the setting as JSON.

    Passes are timed, every method is counted along what the target writes on development prompts,
    and the best forecast, the best of another method, and a draft without a model race plain
    decoding on held-out prompts. Without --target and --draft it takes the embedded models. Run it
    alone. With --prices nothing is timed, and nothing races.
    """
    check_output(json)
    from specdec_lib.core.chance import Sampler
    from specdec_lib.measure.cluster import LadderRecipe, opened
    from specdec_lib.measure.plan import write_plan
    from specdec_lib.measure.price_list import check_prices, prices_of
    from specdec_lib.measure.thread_counts import settle_threads
    from specdec_lib.workload import SPLITS, load_prompts

    priced = prices_of(prices, runtime)
    use_threads(threads)
    sampler = Sampler(temperature, top_k=top_k)
    known, unseen = (load_prompts(prompts, split, limit) for split in SPLITS)
    recipe = LadderRecipe(target, draft, None, tokenizer, device, dtype, runtime, int8_drafts=True)
    ladder = recipe.load(warn=False)
    check_prices(priced, ladder)
    if priced is None:
        settle_threads(ladder, sampler, threads)
    limits = {"tokens": max_new_tokens, "settings": settings, "seed": seed}
    about = {"source": prompts, "asked": runtime, "prices": priced}
    with opened(scheduler, recipe) as cluster:
        write_plan(json, ladder, sampler, (known, unseen), limits, cluster=cluster, **about)
