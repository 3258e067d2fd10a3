"""`specdec plan`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import cache_folder, check_output, write_whole
from specdec_lib.measure.options import (
    Device,
    Dtype,
    MaxNewTokens,
    ModelFolder,
    Prompts,
    Runtime,
    Seed,
    Temperature,
    Threads,
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
    threads: Threads = None,
    prompts: Prompts = "chat",
    limit: Annotated[int, Parameter(help="the first so many prompts of each split")] = 10,
    max_new_tokens: MaxNewTokens = 64,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    seed: Seed = 0,
    settings: Annotated[int, Parameter(help="of each method, counted on development prompts")] = 6,
    json: Annotated[Path, place("where the setting is written")] = Path("plan.json"),
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
    from specdec_lib.measure.comparing import notes_on
    from specdec_lib.measure.plan import make_plan, plan_in_words
    from specdec_lib.measure.settings.exported import export_setting
    from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
    from specdec_lib.workload import load_ladder, load_prompts

    use_threads(threads)
    sampler = Sampler(temperature, top_k=top_k)
    development = load_prompts(prompts, "development", limit)
    held_out = load_prompts(prompts, "held-out", limit)
    ladder = with_int8_drafts(
        load_ladder(
            target,
            draft,
            warn=False,
            tokenizer=tokenizer,
            device=device,
            dtype=dtype,
            runtime=runtime,
        )
    )
    counts = f"{len(development)} development and {len(held_out)} held-out prompts"
    print(f"{ladder.target.runtime}; {counts} of {prompts}", flush=True)
    for note in notes_on(ladder, runtime):
        print(note, flush=True)
    found = make_plan(
        ladder,
        sampler,
        development,
        held_out,
        keep=cache_folder() / "plan",
        tokens=max_new_tokens,
        settings=settings,
        seed=seed,
    )
    write_whole(json, export_setting(found.setting).encode())
    print(plan_in_words(found))
    print(f"The setting is written to {json}; `specdec hf {json}` shows other engines'.")
