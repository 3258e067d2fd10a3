"""`specdec measure defaults`."""

from typing import Annotated, Literal

from cyclopts import Parameter

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    MaxNewTokens,
    OwnPrompts,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def defaults(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 5,
    editions: Annotated[
        list[Literal["exact", "int8"]] | None, Parameter(help="of the target (default: both)")
    ] = None,
    max_new_tokens: MaxNewTokens = 64,
    csv: Csv = None,
) -> None:
    """The draft that nobody tuned, by the clock: with its off-switch and without, by kind; into
    docs/results.md too, if it shows this machine's.

    Run it where nothing else runs. An interrupted run goes on with the prompt it was at.
    """
    from specdec_lib.measure.defaults import (
        EDITIONS,
        defaults_file,
        measure_defaults,
        renew_pages,
        slowest_kinds,
        summarise_defaults,
    )
    from specdec_lib.measure.machine import machine_name
    from specdec_lib.measure.ratios import ALL
    from specdec_lib.measure.settings.usual import DEFAULT
    from specdec_lib.measure.target_text import judged_prompts

    use_threads(1)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, defaults_file(machine_name()))
    asked = judged_prompts(prompts, limit)
    found = measure_defaults(asked, editions or tuple(EDITIONS), tokens=max_new_tokens)
    write_csv(found, place, 6)
    table = summarise_defaults(found)
    shown = table[table.domain == ALL].drop(columns="domain").round(3)
    print(shown.to_string(index=False))
    print(f"where {DEFAULT} gain least:")
    print(slowest_kinds(table, DEFAULT).drop(columns="draft").round(3).to_string(index=False))
    if place is not None:
        renew_pages(place)
    print_where([place])
