"""`specdec measure threads`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    MaxNewTokens,
    OwnPrompts,
    flag,
    print_where,
    table_places,
    write_csv,
)


def threads(
    *,
    counts: Annotated[
        tuple[int, ...],
        Parameter(help="numbers of threads, 1 among them", consume_multiple=True),
    ] = (1, 2),
    prompts: OwnPrompts = None,
    limit: DomainLimit = 5,
    max_new_tokens: MaxNewTokens = 64,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """One thread beside several, by the clock: plain decoding and the quickest tree.

    Run it where nothing else runs: what other programs disturb is timed again.
    """
    if 1 not in counts:
        raise ValueError(f"--counts are compared with one thread, got {counts}")
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.target_text import judged_prompts
    from specdec_lib.measure.thread_counts import measure_threads, threads_beside, threads_file

    (place,) = table_places(csv, prompts, threads_file())
    asked = judged_prompts(prompts, limit)
    found = measure_threads(asked, sorted(set(counts)), Quiet(busy), tokens=max_new_tokens)
    write_csv(found, place, 6)
    print(threads_beside(found).round(3).to_string(index=False))
    print_where([place])
