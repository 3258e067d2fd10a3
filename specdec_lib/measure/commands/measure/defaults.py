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
    """The draft that nobody tuned, by the clock: with its off-switch and without, by kind; into the
    README too, from the stored tables.

    Run it where nothing else runs. An interrupted run goes on with the prompt it was at.
    """
    from specdec_lib.measure.defaults import (
        EDITIONS,
        PLACE,
        PUBLISHED,
        measure_defaults,
        readme_table,
        slowest_kinds,
        stored_defaults,
        summarise_defaults,
    )
    from specdec_lib.measure.pages import README, replace_marked
    from specdec_lib.measure.ratios import ALL
    from specdec_lib.measure.settings.usual import DEFAULT
    from specdec_lib.measure.target_text import judged_prompts

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    found = measure_defaults(asked, editions or tuple(EDITIONS), tokens=max_new_tokens)
    write_csv(found, place, 6)
    table = summarise_defaults(found)
    shown = table[table.domain == ALL].drop(columns="domain").round(3)
    print(shown.to_string(index=False))
    print(f"where {DEFAULT} gain least:")
    print(slowest_kinds(table, DEFAULT).drop(columns="draft").round(3).to_string(index=False))
    if place is not None and place.resolve() in (PLACE, PUBLISHED):
        replace_marked("defaults", readme_table(stored_defaults()), README)
    print_where([place])
