"""`specdec measure temperatures`."""

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def temperatures(*, prompts: OwnPrompts = None, limit: DomainLimit = 10, csv: Csv = None) -> None:
    """How often the first guess of each draft is right, by the temperature of the target's text.

    Counted along what the target writes at each temperature; nothing is timed.
    """
    from specdec_lib.measure.acceptance.by_temperature import PLACE, measure_temperatures
    from specdec_lib.measure.target_text import judged_prompts
    from specdec_lib.workload import load_ladder

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    found = measure_temperatures(judged_prompts(prompts, limit), ladder)
    print(found.pivot(index="temperature", columns="guesser", values="rate").round(3).to_string())
    write_csv(found, place, 5)
    print_where([place])
