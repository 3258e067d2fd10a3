"""Reads a network whose files hold every tensor that its configuration asks for, and no other:
Transformers would fill in, leave out, and open any file that an index names.
"""

import json
import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, cached_file
from transformers.utils import logging as transformers_logging

SHARD = re.compile(r"[^/\\]+\.safetensors")
AutoModel = type[AutoModelForCausalLM] | type[AutoModelForSeq2SeqLM]
SIZES = {  # at most; to build more layers takes seconds and never ends for a mistyped number
    "num_hidden_layers": ("layers", 1000),
    "num_decoder_layers": ("layers", 1000),
    "num_attention_heads": ("attention heads", 10_000),
    "max_position_embeddings": ("positions", 2**30),
}
POSITIVE = re.compile(r"rope_theta|\w*norm\w*_eps(ilon)?")  # numbers of a configuration
NAMED = 3  # tensors of each kind in an error


def read_network(
    kind: AutoModel, source: str, config: PretrainedConfig, dtype: torch.dtype, options: dict
) -> PreTrainedModel:
    """The network of a folder or hub model in safetensors, on the CPU; `options` are those of
    `from_pretrained`, by which all its files are found.

    Raises ValueError if its index names another file than safetensors beside it, or if tensors are
    missing, unexpected, of another shape, not finite or tied in the configuration alone.  (A number
    of heads that divides the width as well as the right one changes no shape and is not noticed.)
    """
    _check_index(source, config, options)
    text = config.get_text_config()
    for name, (words, most) in SIZES.items():
        if not 1 <= (size := getattr(text, name, 1)) <= most:
            raise ValueError(f"its configuration has {size:,} {words}, allowed are 1 to {most:,}")
    _check_numbers(text.to_dict())
    read = partial(
        kind.from_pretrained, source, config=config, dtype=dtype, use_safetensors=True, **options
    )
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # of what would be reported, the error below tells
    try:
        expected, found = read(
            device_map="meta", ignore_mismatched_sizes=True, output_loading_info=True
        )  # shapes without weights, which take no memory
    finally:
        transformers_logging.set_verbosity(before)
    _check_tensors(found)
    network = read()
    untied = expected.all_tied_weights_keys.keys() - network.all_tied_weights_keys.keys()
    if untied:
        tied = f"its configuration ties {min(untied)!r} to another tensor"
        raise ValueError(f"{tied}, and its files hold two: tie_word_embeddings is wrong")
    for name, tensor in network.named_parameters():
        if not torch.isfinite(tensor.sum(dtype=torch.float64)):  # a sum is the quickest look
            raise ValueError(f"its tensor {name!r} holds NaN or infinite numbers")
    return network


def _check_numbers(config: Mapping[Any, Any]) -> None:
    for name, value in config.items():
        if isinstance(value, Mapping):
            _check_numbers(value)
        elif POSITIVE.fullmatch(str(name)) and not 0 < value < math.inf:
            raise ValueError(f"its configuration has {name}={value!r}, allowed are finite above 0")


def _check_index(source: str, config: PretrainedConfig, options: dict) -> None:
    name = getattr(config, "transformers_weights", None) or SAFE_WEIGHTS_INDEX_NAME
    if not name.endswith(".index.json"):
        return
    only_files = {"local_files_only": options["local_files_only"]}
    index = cached_file(source, name, _raise_exceptions_for_missing_entries=False, **only_files)
    if index is None:
        return
    with open(index, encoding="utf-8") as file:
        files = set(json.load(file)["weight_map"].values())
    for file in files:
        if not (isinstance(file, str) and SHARD.fullmatch(file)):
            raise ValueError(f"its index {name} names {file!r}; allowed are .safetensors beside it")


def _check_tensors(found: Mapping[str, Any]) -> None:
    shapes = {
        f"{name!r} ({list(stored)} in the files, {list(wanted)} wanted)"
        for name, stored, wanted in found["mismatched_keys"]
    }
    problems = {
        "missing": set(map(repr, found["missing_keys"])),
        "unexpected": set(map(repr, found["unexpected_keys"])),
        "of another shape": shapes,
    }
    told = [
        f"{len(names)} {what}: {', '.join(sorted(names)[:NAMED])}{' …' * (len(names) > NAMED)}"
        for what, names in problems.items()
        if names
    ]
    if told:
        raise ValueError(f"its tensors are not those of its configuration, {'; '.join(told)}")
