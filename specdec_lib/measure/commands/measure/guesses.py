"""`specdec measure guesses`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    Scheduler,
    check_folders,
    place,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def guesses(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 8,
    ladder: Annotated[Path | None, place("the folder of a ladder (default: data/ladder)")] = None,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """How often a draft's first guess, and one of its best four, is the target's likeliest token.

    Along what the target writes greedily and at temperature 1, by model, kind of prompt, and
    whether the prompt has more than 450 tokens.
    """
    from specdec_lib.measure.cluster import LadderRecipe, opened
    from specdec_lib.measure.guesses import PLACE, measure_guesses
    from specdec_lib.measure.target_text import judged_prompts

    check_folders({}, reads={"ladder": ladder})
    own = prompts if ladder is None else str(ladder)  # none of the stored measurement
    (table,) = table_places(csv, own, PLACE)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    recipe = LadderRecipe(folder=str(ladder) if ladder else None)
    with opened(scheduler, recipe) as cluster:
        found = measure_guesses(asked, recipe, cluster)
    print(found[found.domain == "all"].to_string(index=False))
    write_csv(found, table)
    print_where([table])
