"""`specdec measure rivals`."""

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
    use_threads,
    write_csv,
)


def rivals(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 5,
    max_new_tokens: MaxNewTokens = 128,
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """What a user would pick instead, by the clock: Hugging Face's `generate`, with a growing and
    with a static cache, its assisted generation and its prompt lookup, beside plain decoding on the
    compiled runtime.

    Run it where nothing else runs: what other programs disturb is timed again. A table that is
    there goes on, with more prompts too, as long as code and drafts are the same.
    """
    from transformers.utils.logging import set_verbosity_error

    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.renewing import renew_raced
    from specdec_lib.measure.rival_tables import compare_rivals
    from specdec_lib.measure.rivals import race_rivals, rivals_file
    from specdec_lib.measure.target_text import judged_prompts

    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    use_threads(threads)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, rivals_file())
    asked = judged_prompts(prompts, limit)
    found = race_rivals(place, asked, Quiet(busy), tokens=max_new_tokens)
    write_csv(found, place, 6)
    if place is not None:
        renew_raced(place)
    print(compare_rivals(found).round(3).to_string(index=False))
    print_where([place])
