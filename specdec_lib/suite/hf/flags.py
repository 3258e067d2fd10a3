"""`specdec hf`: the closest flags of other engines for a setting, and what is lost; engines.toml
has the engines.
"""

import json
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.kinds import checked
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.suite.hf.nearest import Nearest, nearest
from specdec_lib.suite.hf.settings import ExportedSetting, export_setting, parse_setting

ENGINES = Path(__file__).with_name("engines.toml")
RANKED = "shared noise and match tables: the draft's probabilities alone rank its guesses"


@dataclass(frozen=True)
class Flags:
    """How one engine comes closest.

    line      to paste
    lost      what the setting does and no engine does
    limits    what this engine does not do or does otherwise, in any setting
    """

    engine: str
    line: str
    lost: tuple[str, ...]
    limits: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the flags of every engine; raises ValueError if the file is no exported setting."""
    parser = Parser("hf", "translate an exported setting into other engines' flags")
    parser.add_argument("file", type=Path, help="JSON that `export_setting` wrote")
    given = parser.parse_args(arguments)
    try:
        data = parse_setting(given.file.read_text(encoding="utf-8"))
        found = _flags(data)
    except (OSError, ValueError, TypeError, LookupError, StopIteration) as error:
        raise ValueError(f"{given.file}: {error}") from error
    print(f"sampling of each request: {_sampling(data.sampler)}")
    print("\n".join(f"lost: {what}" for what in found[0].lost) or "lost: nothing")
    for one in found:
        print("\n  ".join((one.engine, *(one.line or "(no speculation)").splitlines())))
        print(f"  not here: {one.limits}")


@checked
def flags(setting: Setting) -> tuple[Flags, ...]:
    """For each engine; raises ValueError if the draft is not the library's own."""
    return _flags(parse_setting(export_setting(setting)))


def _flags(data: ExportedSetting) -> tuple[Flags, ...]:
    plain, sampled = nearest(data.draft), data.sampler["temperature"] > 0
    if plain.model is not None and plain.model not in data.models:
        raise ValueError(f"models has no {plain.model!r}")
    Sampler(**{name: one for name, one in data.sampler.items() if name != "type"})  # checks them
    if not 0 <= plain.length <= plain.guesses:
        raise ValueError(f"a draft has 0 guesses or more, got {plain.length} of {plain.guesses}")
    values = _values(plain, data)
    lost = (*plain.lost, RANKED) if sampled and plain.length else plain.lost
    which = "copies" if plain.model is None else "model"
    return tuple(
        Flags(
            name,
            engine[which].format(**values) if plain.length else "",
            lost,
            engine["limits"].format(**values),
        )
        for name, engine in tomllib.loads(ENGINES.read_text(encoding="utf-8")).items()
    )


def _values(plain: Nearest, data: ExportedSetting) -> dict[str, object]:
    """What stands in braces in engines.toml."""
    entry = data.models.get(plain.model)
    path = (entry and entry.source) or f"PATH_OF_{plain.model}"
    two_halves = entry is not None and entry.kind == "Seq2SeqModel"
    return vars(plain) | {
        "path": path,
        "quoted": shlex.quote(path),
        "escaped": json.dumps(path).replace("'", r"'\''"),
        "loader": f"AutoModelFor{'Seq2SeqLM' if two_halves else 'CausalLM'}",
        "rows": plain.guesses + 1,
        "drawing": "probabilistic" if plain.drawn and data.sampler["temperature"] else "greedy",
        "sampling": _sampling(data.sampler),
    }


def _sampling(sampler: dict[str, object]) -> str:
    if not sampler["temperature"]:
        return "do_sample=False"
    given = {"temperature": sampler["temperature"], "top_k": sampler["top_k"] or 0}
    given |= {"do_sample": True, "top_p": sampler["top_p"]}
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
