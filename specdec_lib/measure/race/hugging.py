"""What a user would pick instead: `generate` of Hugging Face, its assisted generation with the same
draft, its prompt lookup; and llama.cpp on the file that the target is from.
"""

import copy
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from functools import partial

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Contender, Continuation
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN
from specdec_lib.models.cut_head import CutHead

GENERATE, ASSIST, LOOKUP = HF = ("hf_generate", "hf_assisted", "hf_prompt_lookup")
LLAMA_CPP, PROGRAM, FILE = "llama.cpp", "llama-bench", "SPECDEC_TARGET_GGUF"
HEURISTIC = "heuristic_transient"
# tokens per round, schedule, confidence below which the draft stops; the last but one: the defaults
ASSISTED = [(count, "constant", 0.0) for count in (2, 3, 5)] + [(5, HEURISTIC, 0.0)]
ASSISTED += [(5, "constant", 0.4), (8, "constant", 0.6), (20, "constant", 0.4), (5, HEURISTIC, 0.4)]
# tokens per round, longest ending that is looked for
LOOKED_UP = ((3, 2), (5, 2), (10, 2), (3, 3), (5, 3), (10, 3), (10, 1), (16, 2))


class Portions:
    """A streamer for Hugging Face's `generate` that notes when each portion of tokens came: first
    the prompt, then a portion that ends the reading of it, at last none.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[float, int]] = []

    def put(self, tokens: torch.Tensor) -> None:
        """Note a portion; `generate` calls this."""
        self.noted.append((time.perf_counter(), tokens.numel()))

    def end(self) -> None:
        """Note the end; `generate` calls this."""
        self.noted.append((time.perf_counter(), 0))

    def continuation(self, tokens: tuple[int, ...]) -> Continuation:
        """The generation, timed without its first portion of new tokens, made while reading;
        raises ValueError unless the portions add up to the tokens and all but the last hold some.
        """
        times, sizes = zip(*self.noted[1:], strict=True)
        if sum(sizes) != len(tokens) or min(sizes[:-1]) < 1 or sizes[-1]:
            raise ValueError(f"{len(tokens)} tokens were to be timed, got portions of {sizes}")
        return Continuation(tokens, len(tokens) - sizes[0], times[-1] - times[0], len(sizes) - 1)


def hugging_contenders(
    method: str, model: PreTrainedModel, draft: PreTrainedModel, sampler: Sampler
) -> list[Contender]:
    """One of the methods `HF`, a contender per setting."""
    plain = copy.deepcopy(draft.generation_config)

    def assisted(count: int, schedule: str, confidence: float) -> Mapping:
        # anew each time: the heuristic schedule leaves its last value in the draft's
        config = copy.deepcopy(plain)
        config.num_assistant_tokens, config.num_assistant_tokens_schedule = count, schedule
        config.assistant_confidence_threshold = confidence
        draft.generation_config = config
        return {"assistant_model": draft}

    def looked_up(count: int, longest: int) -> Mapping:
        return {"prompt_lookup_num_tokens": count, "max_matching_ngram_size": longest}

    words, options, settings = {
        GENERATE: (TOKEN_BY_TOKEN, dict, [()]),
        LOOKUP: ("{} tokens, endings of up to {}", looked_up, LOOKED_UP),
        ASSIST: ("{} tokens, {}, confidence {:g}", assisted, ASSISTED),
    }[method]
    drawn = {"do_sample": sampler.temperature > 0}
    if drawn["do_sample"]:
        drawn |= {"temperature": sampler.temperature, "top_p": sampler.top_p}
        drawn |= {"top_k": sampler.top_k or 0}

    # there is no stop token: exactly so many tokens are emitted
    def run(setting: tuple, prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        given, portions = torch.tensor([prompt], device=model.device), Portions()
        torch.manual_seed(seed)
        fixed = {"attention_mask": torch.ones_like(given), "max_new_tokens": count}
        fixed |= {"eos_token_id": None, "pad_token_id": 0, "streamer": portions}
        if isinstance(head := draft.get_output_embeddings(), CutHead):
            head.set_prompt(prompt)
        made = model.generate(given, **fixed, **drawn, **options(*setting))
        return portions.continuation(tuple(made[0, len(prompt) :].tolist()))

    exact = sampler.temperature == 0 and model.dtype in (torch.float32, torch.float64)
    return [
        Contender(method, precision(model), words.format(*one), sampler, partial(run, one), exact)
        for one in settings
    ]


def precision(model: PreTrainedModel) -> str:
    """The runtime of a contender with this model: "Hugging Face float32"."""
    return f"Hugging Face {str(model.dtype).removeprefix('torch.')}"


def llama_cpp(sampler: Sampler) -> Contender | None:
    """Plain decoding by llama.cpp, whose `llama-bench` times tokens after a prompt of the same
    length, and tells none; None, said in a line, where its program or the file is absent.
    """
    program, file = shutil.which(PROGRAM), os.environ.get(FILE)
    if program is None or file is None:
        print(f"{LLAMA_CPP} does not race: {PROGRAM} is on no PATH, or {FILE} names no file")
        return None

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        shape = f"-p 0 -n {count} -d {len(prompt)} -t {torch.get_num_threads()} -r 1 -ngl 0 -o json"
        command = [program, "-m", file, *shape.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ValueError(f"{PROGRAM} failed on {file}: {last}")
        [found] = json.loads(done.stdout)
        return Continuation((), count, sum(found["samples_ns"]) / 1e9, count)

    return Contender(LLAMA_CPP, LLAMA_CPP, TOKEN_BY_TOKEN, sampler, run, exact=False)
