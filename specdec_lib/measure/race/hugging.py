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
from specdec_lib.models.students import CutHead

GENERATE, ASSIST, LOOKUP = HF = ("hf_generate", "hf_assisted", "hf_prompt_lookup")
LLAMA_CPP, PROGRAM, FILE = "llama.cpp", "llama-bench", "SPECDEC_TARGET_GGUF"
ASSISTED = (  # tokens per round, schedule, confidence below which the draft stops
    *((count, "constant", 0.0) for count in (2, 3, 5)),
    (5, "heuristic_transient", 0.0),
    (5, "constant", 0.4),
    (8, "constant", 0.6),
    (20, "constant", 0.4),  # the defaults
    (5, "heuristic_transient", 0.4),
)
# tokens per round, longest ending that is looked for
LOOKED_UP = ((3, 2), (5, 2), (10, 2), (3, 3), (5, 3), (10, 3), (10, 1), (16, 2))


class Portions:
    """A streamer for Hugging Face's `generate` that notes when each portion of tokens came.

    The first portion is the prompt, the second ends the reading of it.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.sizes: list[int] = []

    def put(self, tokens: torch.Tensor) -> None:
        """Note a portion; `generate` calls this."""
        self.end()
        self.sizes.append(tokens.numel())

    def end(self) -> None:
        """Note the time, at last that of the end; `generate` calls this."""
        self.times.append(time.perf_counter())

    def continuation(self, tokens: tuple[int, ...]) -> Continuation:
        """The generation, timed without its first portion of new tokens, made while reading.

        Raises ValueError unless the portions add up to the tokens and all but the first hold some.
        """
        new = self.sizes[1:]
        complete = len(self.times) == len(self.sizes) + 1 and sum(new) == len(tokens)
        if not complete or min(new, default=0) < 1:
            got = f"portions of {new} at {len(self.times)} times"
            raise ValueError(f"{len(tokens)} tokens were to be timed by portions, got {got}")
        seconds = self.times[-1] - self.times[1]
        return Continuation(tokens, len(tokens) - new[0], seconds, len(new))


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

    # there is no stop token: exactly so many tokens are emitted
    def run(setting: tuple, prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        given = torch.tensor([prompt], device=model.device)
        torch.manual_seed(seed)
        portions, chosen = Portions(), options(*setting)
        fixed = {"attention_mask": torch.ones_like(given), "max_new_tokens": count}
        fixed |= {"eos_token_id": None, "pad_token_id": 0, "streamer": portions}
        if isinstance(head := draft.get_output_embeddings(), CutHead):
            head.set_prompt(prompt)
        made = model.generate(given, **fixed, **_drawn(sampler), **chosen)
        return portions.continuation(tuple(made[0, len(prompt) :].tolist()))

    exact = sampler.temperature == 0 and model.dtype in (torch.float32, torch.float64)
    runtime = f"Hugging Face {str(model.dtype).removeprefix('torch.')}"
    return [
        Contender(method, runtime, words.format(*one), sampler, partial(run, one), exact)
        for one in settings
    ]


def _drawn(sampler: Sampler) -> Mapping:
    if sampler.temperature == 0:
        return {"do_sample": False}
    heat = {"do_sample": True, "temperature": sampler.temperature}
    return heat | {"top_p": sampler.top_p, "top_k": sampler.top_k or 0}


def llama_cpp(sampler: Sampler) -> Contender | None:
    """Plain decoding by llama.cpp; None, said in a line, where its program or the file is absent.

    `llama-bench` times tokens after a prompt of the same length, one at a time.  It tells no
    tokens: what they cost does not depend on which they are, nor on how they are chosen.
    """
    program, file = shutil.which(PROGRAM), os.environ.get(FILE)
    if program is None or file is None:
        lacking = f"{PROGRAM} is not on the PATH" if program is None else f"{FILE} names no file"
        print(f"{LLAMA_CPP} does not race: {lacking}")
        return None
    threads = str(torch.get_num_threads())

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        shape = {"-m": file, "-p": "0", "-n": str(count), "-d": str(len(prompt)), "-t": threads}
        options = shape | {"-r": "1", "-ngl": "0", "-o": "json"}
        command = [program, *(word for option in options.items() for word in option)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ValueError(f"{PROGRAM} failed on {file}: {last}")
        [found] = json.loads(done.stdout)
        return Continuation((), count, sum(found["samples_ns"]) / 1e9, count)

    return Contender(LLAMA_CPP, LLAMA_CPP, TOKEN_BY_TOKEN, sampler, run, exact=False, told=False)
