"""The `specdec` command: a verb's module is imported only when the verb is run."""

import re
import sys
from importlib import import_module

from specdec_lib.measure.commands.commandline import Parser, shorten

VERBS = {  # by verb: the module whose function runs it, `main` if none is named, and what it does
    "reproduce": ("suite.reproduce.command", "run the notebooks and make every figure"),
    "gallery": ("suite.gallery.building", "lay the figures out as one page"),
    "compare": ("measure.comparing", "measure whether speculation pays for two models"),
    "plan": ("measure.plan", "find the fastest setting for two models, as JSON"),
    "bench": ("measure.bench", "measure speed against other ways to generate"),
    "ties": (
        "measure.comparing:show_ties",
        "where greedy texts part, and why",
    ),
    "hf": ("suite.hf.flags", "translate an exported setting into other engines' flags"),
    "setup": ("suite.setup", "prepare the SmolLM2 target model"),
    "distil passages": ("suite.distil.passages", "take passages and code out of package archives"),
    "distil write": ("suite.distil.writing", "let the target write text to learn from"),
    "distil overlap": ("suite.distil.overlap", "look for prompts in that text"),
    "distil teach": ("suite.distil.lessons", "store the target's distributions over that text"),
    "distil train": ("suite.distil.training", "train a draft on them"),
    "distil online": ("suite.distil.online_command", "go on training the drafts beside the target"),
    "distil ngrams": ("suite.distil.ngrams", "count n-grams on samples of a draft"),
    "distil matches": ("suite.distil.finishing:measure_matches", "measure the match tables"),
    "distil finish": ("suite.distil.finishing", "put the drafts into data/ladder, or export them"),
    "measure texts": ("measure.text_writing", "let the target write the texts to count along"),
    "measure acceptance": ("measure.acceptance.prediction", "theory against measurement"),
    "measure table": ("measure.domain_table", "the table of the README"),
    "measure verifiers": ("measure.rule_bench.verifying", "verification rules on the same drafts"),
    "measure editions": ("measure.int8_quality", "the int8 edition beside the exact one"),
    "measure staged": ("measure.domain_table:measure_staged", "the sweep behind notebook 03"),
    "measure latency": ("measure.latency.measuring", "seconds per pass, round and setting"),
    "measure growth": ("suite.distil.ngrams:measure_growth", "n-gram quality by number of samples"),
    "measure cascades": ("measure.cascade.studies", "the tables of notebook 04"),
    "measure walltime": ("measure.cascade.variants", "cascades by the clock"),
    "measure regret": ("measure.plan_regret", "what a plan loses against the best setting"),
    "measure learning": ("measure.learning", "drafts that learn while they decode"),
}
REFUSED = 2  # exit statuses
INTERRUPTED = 130
LONGEST = 1000  # characters of an error's line
KEYWORD = re.compile(r"^[a-z_]+\b")


def main(arguments: list[str] | None = None) -> None:
    """Run the verb that the first one or two arguments name, with the rest.

    Exits with the status that the verb returns; a ValueError, or an OSError such as that of a full
    disk, becomes one line and status 2.
    """
    given = sys.argv[1:] if arguments is None else arguments
    verb = next((verb for verb in (" ".join(given[:2]), *given[:1]) if verb in VERBS), None)
    if verb is None:
        return _show_verbs(given)
    Parser.latest = None
    try:
        module, _, function = VERBS[verb][0].partition(":")
        run = getattr(import_module(f"specdec_lib.{module}"), function or "main")
        sys.exit(run(given[len(verb.split()) :]))
    except (ValueError, OSError) as error:
        print(f"specdec {verb}: {_one_line(error)}", file=sys.stderr)
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _one_line(error: Exception) -> str:
    """An error's message in one short line, of an OSError `file: reason`; a keyword that it begins
    with becomes the flag, if it is an option of the verb that ran.
    """
    message = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    line = shorten("; ".join(filter(None, map(str.strip, message.splitlines()))), LONGEST)
    options = Parser.latest.common if Parser.latest else []
    keyword = KEYWORD.match(line)
    if keyword is None:
        return line
    flag = f"--{keyword[0].replace('_', '-')}"
    return flag + line[keyword.end() :] if flag in options else line


def _show_verbs(given: list[str]) -> None:
    """Print the verbs, or those of one group; exits with status 2 if `given` names none."""
    words = [word for word in given[:2] if word not in ("-h", "--help")]
    found = [verb for verb in VERBS if verb.split()[: len(words)] == words]
    if not found:
        print(f"specdec: no verb {' '.join(words)!r}; specdec --help lists them", file=sys.stderr)
        sys.exit(REFUSED)
    print(f"usage: specdec {''.join(f'{word} ' for word in words)}VERB [options]\n")
    print("\n".join(f"  {verb:19} {VERBS[verb][1]}" for verb in found))
    print("\nspecdec VERB --help shows a verb's options.")
