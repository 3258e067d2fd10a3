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

Again = Annotated[
    float,
    Parameter(
        help="race again the prompts of the table on which plain decoding took more than so many"
        " times the lower quartile of its seconds per token, of the same edition, such as 1.2 (0:"
        " none)"
    ),
]


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
    retune: Annotated[
        bool, flag("choose among today's candidates, and drop rows of other settings")
    ] = False,
    again: Again = 0.0,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """What each idea of both papers is worth by the clock: chains and trees, scouts, copies, and
    cascades beside speculative decoding.

    Run it where nothing else runs: what other programs disturb is timed again. A table that is
    there goes on, with more prompts too, as long as code and drafts are the same. Settings that are
    no candidates any more are chosen anew, and all their rows raced.
    """
    from specdec_lib.measure.idea_tables import compare_ideas
    from specdec_lib.measure.ideas import IdeasPlan, ideas_file, race_ideas
    from specdec_lib.measure.machine import machine_name
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.ratios import ALL
    from specdec_lib.measure.renewing import renew_raced
    from specdec_lib.measure.target_text import judged_prompts

    use_threads(threads)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, ideas_file(machine_name()))
    plan = IdeasPlan(
        tuple(editions or IdeasPlan.editions), model, max_new_tokens, retune=retune, again=again
    )
    found = race_ideas(place, judged_prompts(prompts, limit), plan, Quiet(busy))
    write_csv(found, place, 6)
    if place is not None:
        renew_raced(place)
    ratios = compare_ideas(found)
    print(ratios[ratios.part == ALL].drop(columns="part").round(3).to_string(index=False))
    print_where([place])
