"""The closest flags of other engines for a setting, and what is lost in translation. Names as of
transformers 5.23, vLLM 0.33 and SGLang 0.5.23, whose number of draft tokens counts the root. No
engine has stages, cascades or match tables, and only SGLang has trees.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from specdec_lib.core.chance import Sampler
from specdec_lib.core.kinds import checked
from specdec_lib.core.verify import look_up
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.suite.hf.reduced import COPIES, MODEL, NONE, Reduced, reduce_draft
from specdec_lib.suite.hf.settings import ModelEntry, model_entries

WINDOW = 10  # longest ending that is looked for where Max-Gram has no limit
DEPTH = 18  # of SGLang's trie by default
ENCODES = (
    "everything: the engine speculates for decoder-only models, and this is an encoder-decoder",
)
WIDE = (f"matches of more than {WINDOW} tokens, by which the best of several copies is found",)
SHARED = ("copies from this text alone: the trie holds other requests' texts too",)


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


@checked
def flags(
    setting: Setting, models: Mapping[str, ModelEntry] | None = None
) -> tuple[Flags, Flags, Flags]:
    """For transformers, vLLM and SGLang; `models` is what an exported setting says of the draft's.

    Raises ValueError if the draft is not the library's own.
    """
    plain, sampler = reduce_draft(setting.draft), setting.sampler
    models = model_entries(setting.draft) if models is None else models
    entry = models[plain.model.name] if plain.model is not None else ModelEntry("", 0, None)
    path = entry.source or f"PATH_OF_{plain.model.name if plain.model is not None else None}"
    encodes = entry.kind == "Seq2SeqModel"
    copies, before = plain.kind == COPIES, ENCODES if encodes else ()
    flat = _lost(plain, setting, trees=False)
    flat += WIDE if copies and plain.window is None else ()
    branched = _lost(plain, setting, trees=True) + (SHARED if copies else ())
    after = (f"the floor of {plain.floor:g}: there is no threshold",) if plain.floor else ()
    request = {"temperature": 0.0} | _sampling(sampler)
    vllm, sglang = _vllm(plain, path, sampled=sampler.temperature > 0), _sglang(plain, path)
    line = f"--speculative-config {shlex.quote(json.dumps(vllm))}" if vllm else ""
    words = " ".join(f"{name} {shlex.quote(str(value))}" for name, value in sglang.items())
    return (
        _transformers(plain, path, sampler, flat, encodes=encodes),
        Flags("vLLM", vllm, request, line, before + flat + after),
        Flags("SGLang", sglang, request, words, before + branched + after),
    )


def _transformers(
    plain: Reduced, path: str, sampler: Sampler, lost: tuple[str, ...], *, encodes: bool
) -> Flags:
    hot = {"do_sample": True, "top_k": 0} | _sampling(sampler)
    sampling = hot if sampler.temperature > 0 else {"do_sample": False}
    options, given, assistant, before = {}, sampling, "", ""
    if plain.kind == MODEL:
        settings = {
            "num_assistant_tokens": plain.length,
            "num_assistant_tokens_schedule": "constant",
            "assistant_confidence_threshold": plain.floor,
        }
        options, assistant = {"assistant_model": path} | settings, "assistant_model=assistant, "
        kind = "AutoModelForSeq2SeqLM" if encodes else "AutoModelForCausalLM"
        before = (
            f"assistant = {kind}.from_pretrained({path!r})\n"
            f"assistant.generation_config.update({_spelled(settings)})\n"
        )
        each = (
            f"a floor of {plain.floor:g} for the whole path: the threshold here is for each token"
        )
        lost += (each,) if plain.floor else ()
    if plain.kind == COPIES:
        options = {
            "prompt_lookup_num_tokens": plain.length,
            "max_matching_ngram_size": plain.window or WINDOW,
        }
        given = options | sampling
        if plain.least > 1:
            lost += (f"no copies after fewer than {plain.least} equal tokens",)
    line = f"{before}model.generate(**inputs, {assistant}{_spelled(given)})"
    return Flags("transformers", options, sampling, line, lost)


def _vllm(plain: Reduced, path: str, *, sampled: bool) -> dict[str, object]:
    if plain.kind == MODEL:
        how = "probabilistic" if plain.drawn else "greedy"
        return {
            "method": "draft_model",
            "model": path,
            "num_speculative_tokens": plain.length,
        } | ({"draft_sample_method": how} if sampled else {})
    if plain.kind == COPIES:
        return {
            "method": "ngram",
            "num_speculative_tokens": plain.length,
            "prompt_lookup_min": plain.least,
            "prompt_lookup_max": max(plain.least, plain.window or WINDOW),
        }
    return {}


def _sglang(plain: Reduced, path: str) -> dict[str, object]:
    if plain.kind == MODEL:
        return {
            "--speculative-algorithm": "STANDALONE",
            "--speculative-draft-model-path": path,
            "--speculative-num-steps": plain.length,
            "--speculative-eagle-topk": plain.width,
            "--speculative-num-draft-tokens": plain.length + plain.others + 1,
        }
    if plain.kind == COPIES:
        return {
            "--speculative-algorithm": "NGRAM",
            "--speculative-num-draft-tokens": plain.length + 1,
            "--speculative-ngram-max-bfs-breadth": 1,
            "--speculative-ngram-max-trie-depth": max(DEPTH, plain.length + (plain.window or 0)),
        }
    return {}


def _lost(plain: Reduced, setting: Setting, *, trees: bool) -> tuple[str, ...]:
    """What all engines lose, and what those with or without trees do."""
    lost, guesses = list(plain.lost), plain.length + plain.others
    sampled = setting.sampler.temperature > 0
    if plain.ranking and sampled:
        lost.append(f"the match table {plain.ranking!r}, by which guesses are ranked")
    if plain.kind != NONE and setting.rule is look_up and sampled:
        lost.append(
            "noise shared by target and draft: the distribution is the same, the text of a seed is"
            " not, and other guesses are accepted"
        )
    if plain.width > 1 and not trees:
        lost.append(
            f"{plain.others} of {guesses} guesses: left is the chain of the {plain.length}"
            " first-ranked ones"
        )
    if plain.width > 1 and trees:
        lost.append(
            f"unequal siblings: {plain.width} at every node, and the {guesses} best by the"
            " draft's probability are kept"
        )
        if plain.drawn:
            lost.append("siblings drawn by chance: here they are the likeliest")
    return tuple(lost)


def _sampling(sampler: Sampler) -> dict[str, object]:
    """What a request says of it; nothing of a greedy one."""
    if sampler.temperature == 0:
        return {}
    top_k = {} if sampler.top_k is None else {"top_k": sampler.top_k}
    top_p = {} if sampler.top_p == 1 else {"top_p": sampler.top_p}
    return {"temperature": sampler.temperature} | top_k | top_p


def _spelled(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
