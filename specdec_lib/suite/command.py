"""The `specdec` command: each verb is a file in a folder `commands`, found by its name."""

import functools
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import UnknownOptionError

from specdec_lib.measure import commands as measuring
from specdec_lib.measure.options import check_numbers, shorten
from specdec_lib.suite import commands as running

ABOUT = "Speculative decoding: run the notebooks, measure methods, make drafts."
REFUSED = 2  # exit statuses
INTERRUPTED = 130
LONGEST = 1000  # characters of an error's line
KEYWORD = re.compile(r"^[a-z_]+\b")
# arguments that may begin a message which the command line shows with the flag instead
FLAGS = "prompts limit max_new_tokens temperature top_k seed csv out scheduler".split()
ALONE = ("distil", "own")  # a group, and its verb where options follow its name at once
TIMING = ("bench", "compare", "measure latency", "measure learning", "measure walltime", "watch")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the verb that the first words name, with its options.

    Exits with the status that the verb returns; a wrong option, a ValueError, or an OSError such as
    that of a full disk, becomes one line and status 2.
    """
    given = sys.argv[1:] if arguments is None else [*arguments]
    verb = next((verb for verb in (" ".join(given[:2]), *given[:1]) if verb in verbs()), "")
    name = f"specdec {verb}".strip()
    options: Sequence[str] = ()
    try:
        call, bound = parse(given)
        options = [*inspect.signature(call).parameters]
        sys.exit(call(*bound.args, **bound.kwargs) or 0)
    except CycloptsError as error:
        _refuse(name, _wrong_option(error, verb))
    except (ValueError, OSError) as error:
        _refuse(name, _one_line(error, options))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def parse(given: Sequence[str]) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """The function that a command line calls, and its arguments; raises CycloptsError or ValueError
    for a wrong one.
    """
    words = [*given]
    group, verb = ALONE
    if words[:1] == [group] and words[1:] and words[1].startswith("--") and words[1] != "--help":
        words.insert(1, verb)
    call, bound, _ = _app().parse_args(words, exit_on_error=False, print_error=False)
    check_numbers(bound.arguments)
    return call, bound


@functools.cache
def verbs() -> dict[str, str]:
    """Each verb, such as "measure table", and the function that runs it as MODULE:FUNCTION."""
    found = {}
    for package in measuring, running:
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            words = one.name.removeprefix(f"{package.__name__}.").split(".")
            if not one.ispkg:
                found[" ".join(words)] = f"{one.name}:{words[-1]}"
    return found


@functools.cache
def _app() -> App:
    """All verbs. Their modules are small: what a verb needs is imported when it runs."""
    app = _group("specdec", ABOUT)
    groups = {"": app}
    for package in measuring, running:
        for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            name = one.name.rpartition(".")[2]
            if one.ispkg and name not in groups:
                about = pkgutil.resolve_name(one.name).__doc__
                groups[name] = _group(name, " ".join(about.split()))
                app.command(groups[name])
    for verb, function in verbs().items():
        group, _, name = verb.rpartition(" ")
        groups[group].command(pkgutil.resolve_name(function), name=name)
    return app


def _group(name: str, about: str) -> App:
    return App(
        name=name,
        help=about,
        version_flags=[],
        default_parameter=Parameter(negative=(), consume_multiple=True),
    )


def _refuse(name: str, line: str) -> NoReturn:
    """Print what is wrong, and exit with status 2."""
    shown = line.encode(errors="backslashreplace").decode()  # what cannot be printed, escaped
    print(f"{name}: {shown}", file=sys.stderr)
    sys.exit(REFUSED)


def _wrong_option(error: CycloptsError, verb: str) -> str:
    """What is wrong with the words of a command line, in one line."""
    if verb and isinstance(error, UnknownOptionError) and "--scheduler" in str(error):
        why = (
            "it times what it runs, and seconds of other machines are no comparison"
            if verb in TIMING
            else "it runs on this machine alone"
        )
        return f"it takes no --scheduler: {why}"
    return f"{_joined(str(error))} specdec {verb or 'VERB'} --help shows the options."


def _joined(message: str) -> str:
    """The lines of a message as one short line."""
    return shorten("; ".join(filter(None, map(str.strip, message.splitlines()))), LONGEST)


def _one_line(error: Exception, options: Sequence[str]) -> str:
    """An error's message in one short line, of an OSError `file: reason`; a keyword that it begins
    with becomes the flag, if it is an option of the verb.
    """
    message = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    line = _joined(message)
    keyword = KEYWORD.match(line)
    if keyword is None or keyword[0] not in FLAGS or keyword[0] not in options:
        return line
    return f"--{keyword[0].replace('_', '-')}{line[keyword.end() :]}"
