"""The closest flags of other engines for a setting, and what is lost in translation.

Names as of transformers 5.23 (`assistant_model`, `prompt_lookup_num_tokens`), vLLM 0.33
(`--speculative-config`, one JSON object) and SGLang 0.5.23 (`--speculative-algorithm STANDALONE`
and `NGRAM`, whose number of draft tokens counts the root). No engine has stages, cascades or match
tables, and of these three only SGLang has trees.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from specdec_lib.core.chance import Sampler
from specdec_lib.core.verify import look_up
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.suite.hf.reduced import COPIES, MODEL, NONE, Reduced, reduce_draft
from specdec_lib.suite.hf.settings import source_of

WINDOW = 10  # longest ending that is looked for where Max-Gram has no limit
DEPTH = 18  # of SGLang's trie by default
UNKNOWN = "PATH_OF_{}"  # a model of unknown source


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


def flags(setting: Setting) -> tuple[Flags, Flags, Flags]:
    """For transformers, vLLM and SGLang.

    Raises ValueError if the draft is not the library's own.
    """
    plain = reduce_draft(setting.draft)
    return tuple(how(plain, setting) for how in (_transformers, _vllm, _sglang))


def _transformers(plain: Reduced, setting: Setting) -> Flags:
    hot = setting.sampler.temperature > 0
    sampling = (
        {"do_sample": True, "top_k": 0} | _sampling(setting.sampler)
        if hot
        else {"do_sample": False}
    )
    lost = _common(plain, setting, trees=False)
    options: dict[str, object] = {}
    before = ""
    if plain.kind == MODEL:
        settings = {
            "num_assistant_tokens": plain.length,
            "num_assistant_tokens_schedule": "constant",
            "assistant_confidence_threshold": plain.floor,
        }
        kind = "AutoModelForSeq2SeqLM" if _two_halved(plain) else "AutoModelForCausalLM"
        before = (
            f"assistant = {kind}.from_pretrained({_path(plain)!r})\n"
            f"assistant.generation_config.update({_spelled(settings)})\n"
        )
        options = {"assistant_model": _path(plain)} | settings
        if plain.floor:
            lost += (
                f"a floor of {plain.floor:g} for the whole path: the threshold here is for each"
                " token",
            )
    if plain.kind == COPIES:
        options = {
            "prompt_lookup_num_tokens": plain.length,
            "max_matching_ngram_size": plain.window or WINDOW,
        }
        lost += _window(plain) + (
            (f"no copies after fewer than {plain.least} equal tokens",) if plain.least > 1 else ()
        )
    given = {name: value for name, value in options.items() if plain.kind == COPIES} | sampling
    assistant = "assistant_model=assistant, " if plain.kind == MODEL else ""
    call = f"model.generate(**inputs, {assistant}{_spelled(given)})"
    return Flags("transformers", options, sampling, before + call, lost)


def _vllm(plain: Reduced, setting: Setting) -> Flags:
    lost, options = _common(plain, setting, trees=False), {}
    if plain.kind == MODEL:
        options = {
            "method": "draft_model",
            "model": _path(plain),
            "num_speculative_tokens": plain.length,
        }
        if setting.sampler.temperature > 0:
            options["draft_sample_method"] = "probabilistic" if plain.drawn else "greedy"
    if plain.kind == COPIES:
        least, longest = plain.least, max(plain.least, plain.window or WINDOW)
        options = {
            "method": "ngram",
            "num_speculative_tokens": plain.length,
            "prompt_lookup_min": least,
            "prompt_lookup_max": longest,
        }
        lost += _window(plain)
    line = f"--speculative-config {shlex.quote(json.dumps(options))}" if options else ""
    return Flags(
        "vLLM",
        options,
        {"temperature": 0.0} | _sampling(setting.sampler),
        line,
        _two_halves(plain) + lost + _floor(plain),
    )


def _sglang(plain: Reduced, setting: Setting) -> Flags:
    lost, options = _common(plain, setting, trees=True), {}
    if plain.kind == MODEL:
        options = {
            "--speculative-algorithm": "STANDALONE",
            "--speculative-draft-model-path": _path(plain),
            "--speculative-num-steps": plain.length,
            "--speculative-eagle-topk": plain.width,
            "--speculative-num-draft-tokens": plain.guesses + 1,
        }
    if plain.kind == COPIES:
        options = {
            "--speculative-algorithm": "NGRAM",
            "--speculative-num-draft-tokens": plain.length + 1,
            "--speculative-ngram-max-bfs-breadth": 1,
            "--speculative-ngram-max-trie-depth": max(DEPTH, plain.length + (plain.window or 0)),
        }
        lost += ("copies from this text alone: the trie holds other requests' texts too",)
    line = " ".join(f"{name} {shlex.quote(str(value))}" for name, value in options.items())
    return Flags(
        "SGLang",
        options,
        {"temperature": 0.0} | _sampling(setting.sampler),
        line,
        _two_halves(plain) + lost + _floor(plain),
    )


def _common(plain: Reduced, setting: Setting, *, trees: bool) -> tuple[str, ...]:
    """What all engines lose, and what those without trees do."""
    lost = plain.lost
    if plain.ranking and setting.sampler.temperature > 0:
        lost += (f"the match table {plain.ranking!r}, by which guesses are ranked",)
    if plain.kind != NONE and setting.rule is look_up and setting.sampler.temperature > 0:
        lost += (
            "noise shared by target and draft: the distribution is the same, the text of a seed is"
            " not, and other guesses are accepted",
        )
    if plain.width > 1 and not trees:
        lost += (
            f"{plain.guesses - plain.length} of {plain.guesses} guesses: left is the chain of the"
            f" {plain.length} first-ranked ones",
        )
    if plain.width > 1 and trees:
        lost += (
            f"unequal siblings: {plain.width} at every node, and the {plain.guesses} best by the"
            " draft's probability are kept",
        )
        if plain.drawn:
            lost += ("siblings drawn by chance: here they are the likeliest",)
    return lost


def _floor(plain: Reduced) -> tuple[str, ...]:
    return (f"the floor of {plain.floor:g}: there is no threshold",) if plain.floor else ()


def _two_halves(plain: Reduced) -> tuple[str, ...]:
    return (
        (
            "everything: the engine speculates for decoder-only models, and this is an"
            " encoder-decoder",
        )
        if _two_halved(plain)
        else ()
    )


def _two_halved(plain: Reduced) -> bool:
    return "Seq2SeqModel" in (type(plain.model).__name__, getattr(plain.model, "kind", ""))


def _window(plain: Reduced) -> tuple[str, ...]:
    return (
        (f"matches of more than {WINDOW} tokens, by which the best of several copies is found",)
        if plain.window is None
        else ()
    )


def _sampling(sampler: Sampler) -> dict[str, object]:
    """What a request says of it; nothing of a greedy one."""
    if sampler.temperature == 0:
        return {}
    given = {"temperature": sampler.temperature, "top_k": sampler.top_k, "top_p": sampler.top_p}
    return {
        name: value
        for name, value in given.items()
        if (name, value) not in (("top_k", None), ("top_p", 1.0))
    }


def _path(plain: Reduced) -> str:
    return source_of(plain.model) or UNKNOWN.format(plain.model.name)


def _spelled(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
