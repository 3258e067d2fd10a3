"""`specdec compare`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import (
    ChosenThreads,
    Csv,
    Device,
    Dtype,
    Limit,
    MaxNewTokens,
    ModelFolder,
    Prompts,
    Runtime,
    Seed,
    Temperature,
    Tokenizer,
    TopK,
    check_csv,
    use_threads,
    write_csv,
)


def compare(
    *,
    target: ModelFolder = None,
    draft: ModelFolder = None,
    tokenizer: Tokenizer = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    runtime: Annotated[Runtime, Parameter(help="of our loop: auto is fast if it can")] = "auto",
    threads: ChosenThreads = None,
    prompts: Prompts = "chat",
    limit: Limit = 10,
    max_new_tokens: MaxNewTokens = 40,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    seed: Seed = 0,
    csv: Csv = None,
) -> None:
    """Measure whether speculation pays for a pair of models on this machine.

    Without --target and --draft it takes the embedded models. Run it where nothing else runs.
    """
    check_csv(csv)
    from transformers.utils.logging import set_verbosity_error

    from specdec_lib.core.chance import Sampler
    from specdec_lib.measure.comparing import SHOWN, compare_methods, given_prompts, heading
    from specdec_lib.measure.ratios import without_few
    from specdec_lib.measure.thread_counts import settle_threads
    from specdec_lib.measure.verdict import method_summary, verdict
    from specdec_lib.workload import load_ladder

    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    use_threads(threads)
    sampler = Sampler(temperature, top_k=top_k)
    asked = given_prompts(prompts, limit)
    ladder = load_ladder(
        target, draft, warn=False, tokenizer=tokenizer, device=device, dtype=dtype, runtime=runtime
    )
    settle_threads(ladder, sampler, threads)
    about = f"prompts: {len(asked)} of {prompts}, at most {max_new_tokens} tokens each"
    print(heading(ladder, sampler, about, runtime), flush=True)
    rows = compare_methods(ladder, asked, sampler, max_new_tokens=max_new_tokens, seed=seed)
    summary = method_summary(rows)
    print(without_few(summary)[SHOWN].round(2).to_string(index=False, na_rep="–"))
    print(f"\n{verdict(summary)}", flush=True)
    write_csv(without_few(summary), csv, 6)
