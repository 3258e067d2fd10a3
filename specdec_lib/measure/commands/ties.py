"""`specdec ties`."""

from specdec_lib.measure.options import (
    Device,
    Dtype,
    Limit,
    MaxNewTokens,
    ModelFolder,
    Prompts,
    Threads,
    Tokenizer,
    use_threads,
)


def ties(
    *,
    target: ModelFolder = None,
    draft: ModelFolder = None,
    tokenizer: Tokenizer = None,
    device: Device = "auto",
    dtype: Dtype = "bfloat16",
    threads: Threads = None,
    prompts: Prompts = "chat",
    limit: Limit = 8,
    max_new_tokens: MaxNewTokens = 64,
) -> int:
    """Compare greedy texts of a model written in three ways, and say where and why they part.

    A difference is rounding or a bug; the exit status is 1 if one is not rounding.
    """
    from specdec_lib.measure.comparing import given_prompts, print_ties
    from specdec_lib.workload import load_ladder

    use_threads(threads)
    asked = given_prompts(prompts, limit)
    ladder = load_ladder(target, draft, warn=False, tokenizer=tokenizer, device=device, dtype=dtype)
    return print_ties(ladder, asked, max_new_tokens)
