"""What races: methods that continue a prompt and return its tokens and seconds, without those of
reading it. They are our loop with any draft, and what a user would pick instead: `generate` of
Hugging Face, its assisted generation with the same draft, its prompt lookup; and llama.cpp on the
file that the target is from.
"""

import copy
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, read_prompt, rounds
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.settings.names import (
    ASSIST,
    GENERATE,
    LLAMA_CPP,
    LOOKUP,
    STATIC_CACHE,
    TOKEN_BY_TOKEN,
)
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.trial import work_of
from specdec_lib.models.cut_head import CutHead
from specdec_lib.theory import Work

PROGRAM = "llama-bench"  # of llama.cpp
FILE = "SPECDEC_TARGET_GGUF"  # names the file that it runs
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


@dataclass(frozen=True)
class Continuation:
    """What a contender made of one prompt.

    tokens              none where it does not tell them
    timed_tokens        of all tokens, those that were emitted within `seconds`
    rounds              passes of the target
    accepted, tried     as of rounds; 0 where they are not counted
    passes              forward passes by model; empty where they are not counted
    work                what the rounds did, and outside their seconds outside the models, where
                        both are known
    """

    tokens: tuple[int, ...]
    timed_tokens: int
    seconds: float
    rounds: int
    accepted: int = 0
    tried: int = 0
    passes: Mapping[str, int] = field(default_factory=dict)
    work: Work | None = None
    outside: float = 0.0


@dataclass(frozen=True)
class Contender:
    """A decoding method to benchmark.

    method     its kind, such as "chain" or "hf_generate"
    setting    what was chosen within the method, in words
    run        run(prompt, count, seed) generates exactly `count` new tokens
    exact      its tokens must be the target's own for the seed, but for rounding
    draft      of our loop
    """

    method: str
    runtime: str
    setting: str
    sampler: Sampler
    run: Callable[[tuple[int, ...], int, int], Continuation]
    exact: bool = True
    draft: Draft | None = field(default=None, compare=False)


def our_contenders(
    target: LanguageModel, settings: Sequence[Setting], runtime: str = ""
) -> list[Contender]:
    """Our loop with the draft of each setting, under its sampler."""

    def run(setting: Setting, prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        chance = Chance(seed, setting.sampler)
        done, seconds = time_rounds(target, setting.draft, prompt, chance, max_new_tokens=count)
        tokens = tuple(token for one in done for token in one.emitted)
        passes = {name: sum(one.usage[name].passes for one in done) for name in done[0].usage}
        accepted = sum(one.accepted for one in done)
        tried = sum(one.tried for one in done)
        work = work_of(done, target.name)
        outside = sum(one.overhead_seconds for one in done)
        counted = (len(done), accepted, tried, passes, work, outside)
        return Continuation(tokens, len(tokens), seconds, *counted)

    return [
        Contender(
            method=one.method,
            runtime=runtime,
            setting=one.name,
            sampler=one.sampler,
            run=partial(run, one),
            draft=one.draft,
        )
        for one in settings
    ]


def time_rounds(
    target: LanguageModel,
    draft: Draft,
    prompt: Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    on_start: Callable[[], object] = lambda: None,
) -> tuple[list[Round], float]:
    """The rounds of one generation, and the seconds from the start of the first to the end of the
    last; `on_start` is called when the prompt has been read, just before. A prompt that the target
    has read for the generation before is not read again.
    """
    read_prompt(target, draft, Context.of(tuple(prompt)), again=True)
    limits = {"max_new_tokens": max_new_tokens, "rule": rule, "stop_tokens": stop_tokens}
    played = rounds(target, draft, prompt, chance, **limits)
    on_start()
    started = time.perf_counter()
    done = [one for one, _ in played]
    return done, time.perf_counter() - started


class Portions:
    """A streamer that notes when each portion of tokens came: `generate` of Hugging Face puts them,
    and ends. The first portion is the prompt, the second ends the reading of it.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.sizes: list[int] = []

    def put(self, tokens: torch.Tensor) -> None:
        self.end()
        self.sizes.append(tokens.numel())

    def end(self) -> None:
        self.times.append(time.perf_counter())

    def continuation(self, tokens: tuple[int, ...]) -> Continuation:
        """The generation, timed without its first portion of new tokens, made while reading.

        Raises ValueError unless the portions add up to the tokens.
        """
        _, first, *others = self.sizes
        if first + sum(others) != len(tokens):
            raise ValueError(
                f"{len(tokens)} tokens were to be timed by portions, got portions of"
                f" {[first, *others]}"
            )
        seconds = self.times[-1] - self.times[1]
        return Continuation(tokens, sum(others), seconds, 1 + len(others))


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

    def cached(setting: str) -> Mapping:
        return {"cache_implementation": "static"} if setting == STATIC_CACHE else {}

    def looked_up(count: int, longest: int) -> Mapping:
        return {"prompt_lookup_num_tokens": count, "max_matching_ngram_size": longest}

    ways: dict[str, tuple[str, Callable[..., Mapping], Sequence[tuple]]] = {
        GENERATE: ("{}", cached, [(TOKEN_BY_TOKEN,), (STATIC_CACHE,)]),
        LOOKUP: ("{} tokens, endings of up to {}", looked_up, LOOKED_UP),
        ASSIST: ("{} tokens, {}, confidence {:g}", assisted, ASSISTED),
    }
    words, options, settings = ways[method]

    def run(setting: tuple, prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        given = torch.tensor([prompt], device=model.device)
        portions = Portions()
        torch.manual_seed(seed)  # there is no stop token: exactly so many tokens are emitted
        fixed = {"attention_mask": torch.ones_like(given), "max_new_tokens": count}
        fixed |= {"eos_token_id": None, "pad_token_id": 0, "streamer": portions}
        if isinstance(head := draft.get_output_embeddings(), CutHead):
            head.set_prompt(prompt)
        network: Any = model  # what it generates depends on the options: here token ids
        made = network.generate(given, **fixed, **_drawn(sampler), **options(*setting))
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
    program = shutil.which(PROGRAM)
    file = os.environ.get(FILE)
    if program is None or file is None:
        lacking = f"{PROGRAM} is not on the PATH" if program is None else f"{FILE} names no file"
        print(f"{LLAMA_CPP} does not race: {lacking}")
        return None
    threads = str(torch.get_num_threads())

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        command = [program, "-m", file, "-p", "0", "-n", str(count), "-d", str(len(prompt))]
        command += ["-t", threads, "-r", "1", "-ngl", "0", "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ValueError(f"{PROGRAM} failed on {file}: {last}")
        [found] = json.loads(done.stdout)
        return Continuation((), count, sum(found["samples_ns"]) / 1e9, count)

    return Contender(LLAMA_CPP, LLAMA_CPP, TOKEN_BY_TOKEN, sampler, run, exact=False)
