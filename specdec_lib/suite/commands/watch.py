"""`specdec watch`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import (
    RACE_REQUEST,
    RACE_TOKENS,
    Csv,
    Device,
    Dtype,
    MaxNewTokens,
    ModelFolder,
    Runtime,
    Seed,
    Temperature,
    Tokenizer,
    TopK,
    check_csv,
    use_threads,
    write_csv,
)


def watch(
    request: Annotated[str, Parameter(help="that all of them answer")] = RACE_REQUEST,
    *,
    target: ModelFolder = None,
    draft: ModelFolder = None,
    tokenizer: Tokenizer = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    runtime: Annotated[Runtime, Parameter(help="of the target: auto is fast if it can")] = "auto",
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    max_new_tokens: MaxNewTokens = RACE_TOKENS,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    seed: Seed = 0,
    slower: Annotated[float, Parameter(help="times as slow as it was decoded")] = 1.0,
    csv: Csv = None,
) -> None:
    """Watch plain decoding, a chain, a staged tree, a cascade and copies write the same answer.

    Each runs alone on this machine; then they are shown side by side, token by token, at the pace
    at which they were decoded, each token in the colour of who guessed it.
    """
    check_csv(csv)
    from specdec_lib.core.chance import Sampler
    from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
    from specdec_lib.measure.watching import check_request, race_speeds, record_race
    from specdec_lib.show.racing import check_pace, play_race
    from specdec_lib.workload import load_ladder

    check_pace(slower)
    check_request(request)
    sampler = Sampler(temperature, top_k=top_k)
    use_threads(threads)
    ladder = load_ladder(
        target, draft, warn=False, tokenizer=tokenizer, device=device, dtype=dtype, runtime=runtime
    )
    ladder = with_int8_drafts(ladder)
    recording = record_race(
        ladder, request, sampler, seed=seed, max_new_tokens=max_new_tokens, say=print
    )
    play_race(recording, slower=slower)
    print(race_speeds(recording).round(3).to_string(index=False))
    write_csv(recording, csv, 6)
