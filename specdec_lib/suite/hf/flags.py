"""`specdec hf`: the closest flags of other engines for a setting, and what is lost. Names as of
transformers 5.23, vLLM 0.33 and SGLang 0.5.23, whose number of draft tokens counts the root. No
engine has stages, cascades or match tables, and only SGLang has trees.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.kinds import checked
from specdec_lib.core.verify import look_up
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.hf.reduced import COPIES, MODEL, NONE, Reduced, reduce_draft
from specdec_lib.suite.hf.settings import ModelEntry, build_setting, model_entries, parse_setting

WINDOW = 10  # longest ending that is looked for where Max-Gram has no limit
DEPTH = 18  # of SGLang's trie by default


@dataclass(frozen=True)
class Flags:
    """How one engine comes closest.

    options     as the engine spells them
    sampling    the request's own: temperature, top-k, top-p
    line        to paste
    lost        what the setting does and the engine does not, the largest first
    """

    engine: str
    options: Mapping[str, object]
    sampling: Mapping[str, object]
    line: str
    lost: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the flags of every engine; raises ValueError if the file is no exported setting."""
    parser = Parser("hf", "translate an exported setting into other engines' flags")
    parser.add_argument("file", type=Path, help="JSON that `export_setting` wrote")
    given = parser.parse_args(arguments)

    def stand_in(where: str, named: Mapping[str, object]) -> Katz | np.ndarray:
        """An empty table in the place of each model and table, of which only the name counts."""
        if "model" not in named:
            return np.full(named["bigrams"], -1)
        if named["model"] not in data.models:
            raise ValueError(f"{where}: models has no {named['model']!r}")
        size = data.models[named["model"]].vocabulary
        return replace(Katz.fit([np.zeros(1, np.int64)], size), name=named["model"])

    try:
        data = parse_setting(given.file.read_text(encoding="utf-8"))
        found = flags(build_setting(data, stand_in), data.models)
    except (OSError, ValueError) as error:
        raise ValueError(f"{given.file}: {error}") from error
    for one in found:
        print("\n  ".join((one.engine, *(one.line or "(no speculation)").splitlines())))
        print(f"  sampling: {dict(one.sampling)}")
        print("\n".join(f"  lost: {what}" for what in one.lost) or "  lost: nothing")


@checked
def flags(
    setting: Setting, models: Mapping[str, ModelEntry] | None = None
) -> tuple[Flags, Flags, Flags]:
    """For transformers, vLLM and SGLang; `models` is what an exported setting says of the draft's.

    Raises ValueError if the draft is not the library's own.
    """
    plain, sampler = reduce_draft(setting.draft), setting.sampler
    path, encodes = "", False
    if plain.model is not None:
        name = plain.model.name
        entry = (models or model_entries(setting.draft))[name]
        path, encodes = entry.source or f"PATH_OF_{name}", entry.kind == "Seq2SeqModel"
    vllm, sglang = _vllm(plain, path, sampled=sampler.temperature > 0), _sglang(plain, path)
    line = f"--speculative-config {shlex.quote(json.dumps(vllm))}" if vllm else ""
    words = " ".join(f"{name} {shlex.quote(str(value))}" for name, value in sglang.items())
    copies = plain.kind == COPIES
    wide = f"matches of more than {WINDOW} tokens, by which the best of several copies is found"
    flat = _lost(plain, setting, trees=False) + _said((copies and plain.window is None, wide))
    shared = "copies from this text alone: the trie holds other requests' texts too"
    branched = _lost(plain, setting, trees=True) + _said((copies, shared))
    before = _said((encodes, "everything: the engine speculates for decoder-only models"))
    after = _said((plain.floor, f"the floor of {plain.floor:g}: there is no threshold"))
    request = {"temperature": 0.0} | _sampling(sampler)
    return (
        _transformers(plain, path, sampler, flat, encodes=encodes),
        Flags("vLLM", vllm, request, line, before + flat + after),
        Flags("SGLang", sglang, request, words, before + branched + after),
    )


def _transformers(
    plain: Reduced, path: str, sampler: Sampler, lost: tuple[str, ...], *, encodes: bool
) -> Flags:
    sampled = {"do_sample": True, "top_k": 0} | _sampling(sampler)
    sampling = sampled if sampler.temperature > 0 else {"do_sample": False}
    options, given, assistant, before = {}, sampling, "", ""
    if plain.kind == MODEL:
        settings = {
            "num_assistant_tokens": plain.length,
            "num_assistant_tokens_schedule": "constant",
            "assistant_confidence_threshold": plain.floor,
        }
        options, assistant = {"assistant_model": path} | settings, "assistant_model=assistant, "
        before = (
            f"assistant = AutoModelFor{'Seq2SeqLM' if encodes else 'CausalLM'}.from_pretrained"
            f"({path!r})\nassistant.generation_config.update({_spelled(settings)})\n"
        )
        floor = f"a floor of {plain.floor:g} for the whole path: here it is for each token"
        lost += _said((plain.floor, floor))
    elif plain.kind == COPIES:
        window = plain.window or WINDOW
        options = {"prompt_lookup_num_tokens": plain.length, "max_matching_ngram_size": window}
        given = options | sampling
        few = f"no copies after fewer than {plain.least} equal tokens"
        lost += _said((plain.least > 1, few))
    line = f"{before}model.generate(**inputs, {assistant}{_spelled(given)})"
    return Flags("transformers", options, sampling, line, lost)


def _vllm(plain: Reduced, path: str, *, sampled: bool) -> dict[str, object]:
    if plain.kind == NONE:
        return {}
    guesses = {"num_speculative_tokens": plain.length}
    if plain.kind == MODEL:
        how = {"draft_sample_method": "probabilistic" if plain.drawn else "greedy"}
        return {"method": "draft_model", "model": path} | guesses | (how if sampled else {})
    most = max(plain.least, plain.window or WINDOW)
    window = {"prompt_lookup_min": plain.least, "prompt_lookup_max": most}
    return {"method": "ngram"} | guesses | window


def _sglang(plain: Reduced, path: str) -> dict[str, object]:
    if plain.kind == NONE:
        return {}
    if plain.kind == MODEL:
        return {
            "--speculative-algorithm": "STANDALONE",
            "--speculative-draft-model-path": path,
            "--speculative-num-steps": plain.length,
            "--speculative-eagle-topk": plain.width,
            "--speculative-num-draft-tokens": plain.length + plain.others + 1,
        }
    return {
        "--speculative-algorithm": "NGRAM",
        "--speculative-num-draft-tokens": plain.length + 1,
        "--speculative-ngram-max-bfs-breadth": 1,
        "--speculative-ngram-max-trie-depth": max(DEPTH, plain.length + (plain.window or 0)),
    }


def _lost(plain: Reduced, setting: Setting, *, trees: bool) -> tuple[str, ...]:
    """What all engines lose, and what those with or without trees do."""
    guesses, sampled = plain.length + plain.others, setting.sampler.temperature > 0
    shared = plain.kind != NONE and setting.rule is look_up and sampled
    branches = plain.width > 1
    chain = f"left is the chain of the {plain.length} first-ranked ones"
    equal = f"{plain.width} at every node, and the {guesses} best by the draft's probability"
    return plain.lost + _said(
        (plain.ranking and sampled, f"the match table {plain.ranking!r}, which ranks guesses"),
        (shared, "noise shared by target and draft: other guesses are accepted, same distribution"),
        (branches and not trees, f"{plain.others} of {guesses} guesses: {chain}"),
        (branches and trees, f"unequal siblings: {equal}"),
        (branches and trees and plain.drawn, "siblings drawn by chance: here the likeliest"),
    )


def _said(*words: tuple[object, str]) -> tuple[str, ...]:
    return tuple(text for holds, text in words if holds)


def _sampling(sampler: Sampler) -> dict[str, object]:
    usual, given = Sampler(), asdict(sampler) if sampler.temperature > 0 else {}
    return {name: value for name, value in given.items() if value != getattr(usual, name)}


def _spelled(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
