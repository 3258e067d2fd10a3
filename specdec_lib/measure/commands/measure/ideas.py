"""`specdec measure ideas`."""

from typing import Annotated, Literal

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


def ideas(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 30,
    editions: Annotated[
        list[Literal["exact", "int8"]] | None, Parameter(help="of the target (default: both)")
    ] = None,
    model: Annotated[Literal["draft", "middle"], Parameter(help="of the ladder, that drafts")] = (
        "middle"
    ),
    max_new_tokens: MaxNewTokens = 128,
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """What each idea of both papers is worth by the clock: chains and trees, scouts, copies, and
    cascades beside speculative decoding.

    Run it where nothing else runs: what other programs disturb is timed again. A table that is
    there goes on, with more prompts too, as long as code and drafts are the same.
    """
    import pandas as pd

    from specdec_lib.measure.ideas import (
        IdeasPlan,
        compare_ideas,
        ideas_file,
        measure_ideas,
        read_finished,
        with_others,
    )
    from specdec_lib.measure.latency.passes import machine_name
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.ratios import ALL
    from specdec_lib.measure.target_text import judged_prompts

    use_threads(threads)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, ideas_file(machine_name()))
    stored = [ideas_file(machine_name(), published=published) for published in (False, True)]
    before = read_finished(place)
    finished = pd.concat([before, read_finished(*(one for one in stored if one != place))])
    plan = IdeasPlan(tuple(editions or IdeasPlan.editions), model, max_new_tokens)
    asked = judged_prompts(prompts, limit)
    raced = measure_ideas(asked, plan, Quiet(busy), finished)
    found = with_others(pd.concat(raced), before)
    write_csv(found, place, 6)
    ratios = compare_ideas(found)
    print(ratios[ratios.part == ALL].drop(columns="part").round(3).to_string(index=False))
    print_where([place])
