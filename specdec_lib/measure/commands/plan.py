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
    json: Annotated[Path, place("where the setting is written")] = Path("plan.json"),
    scheduler: Scheduler = None,
) -> None:
    """Find the fastest setting for a pair of models on this machine and these prompts, say whether
    speculation pays at all, and write the setting as JSON.

    Passes are timed, every method is counted along what the target writes on development prompts,
    and the best forecast, the best of another method, and a draft without a model race plain
    decoding on held-out prompts. Without --target and --draft it takes the embedded models. Run it
    alone.
    """
    check_output(json)
    from specdec_lib.core.chance import Sampler
    from specdec_lib.measure.cluster import LadderRecipe, opened
    from specdec_lib.measure.plan import write_plan
    from specdec_lib.measure.thread_counts import choose_threads
    from specdec_lib.workload import SPLITS, load_prompts

    use_threads(threads)
    sampler = Sampler(temperature, top_k=top_k)
    development, held_out = SPLITS
    both = (load_prompts(prompts, development, limit), load_prompts(prompts, held_out, limit))
    recipe = LadderRecipe(target, draft, None, tokenizer, device, dtype, runtime, int8_drafts=True)
    ladder = recipe.load(warn=False)
    if threads is None and ladder.target.model.device.type == "cpu":
        print(choose_threads(ladder, sampler), flush=True)
    limits = {"tokens": max_new_tokens, "settings": settings, "seed": seed}
    about = {"source": prompts, "asked": runtime}
    with opened(scheduler, recipe) as cluster:
        write_plan(json, ladder, sampler, both, limits, cluster=cluster, **about)
