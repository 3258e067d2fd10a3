"""The `specdec` command: each verb is the `main` of a module that is imported only when asked for."""

import sys
from importlib import import_module

VERBS = {
    "setup": ("specdec_lib.suite.setup.command", "prepare the default target model"),
    "table": ("specdec_lib.measure.sweep.command", "measure the README's table"),
    "acceptance": ("specdec_lib.measure.acceptance.command", "predictions against measurements"),
    "staged": ("specdec_lib.measure.sweep.measuring", "the staged notebook's sweep"),
    "distil": ("specdec_lib.suite.distil.command", "make the default drafts"),
    "bench": ("specdec_lib.measure.race.command", "time every method against the usual baselines"),
    "compare": (
        "specdec_lib.measure.compare.command",
        "does speculation pay for a pair of models?",
    ),
    "latency": ("specdec_lib.measure.latency.command", "time passes, rounds and settings"),
    "ties": ("specdec_lib.measure.ties.command", "where greedy texts differ: rounding, or a bug?"),
}


def main(arguments: list[str] | None = None) -> None:
    """Run the verb that the first argument names, with the rest."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help"):
        print("usage: specdec VERB [options]\n")
        print("\n".join(f"  {name:10} {summary}" for name, (_, summary) in VERBS.items()))
        return
    if given[0] not in VERBS:
        sys.exit(f"specdec: no verb {given[0]!r}; there are {', '.join(VERBS)}")
    try:
        import_module(VERBS[given[0]][0]).main(given[1:])
    except ValueError as error:
        sys.exit(f"specdec {given[0]}: {error}")
