"""llama.cpp as a contender: its own benchmark program, on the GGUF file that the target is from."""

import json
import os
import shutil
import subprocess

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Contender, Continuation

PROGRAM = "llama-bench"
FILE = "SPECDEC_TARGET_GGUF"
METHOD = "llama.cpp"


def llama_cpp(sampler: Sampler) -> Contender | None:
    """Plain decoding by llama.cpp; None, said in a line, where its program or the file is absent.

    `llama-bench` times tokens after a prompt of the same length, one at a time.  It tells no
    tokens: what they cost does not depend on which they are, nor on how they are chosen.
    """
    program, file = shutil.which(PROGRAM), os.environ.get(FILE)
    if program is None or file is None:
        lacking = f"{PROGRAM} is not on the PATH" if program is None else f"{FILE} names no file"
        print(f"{METHOD} does not race: {lacking}")
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

    return Contender(METHOD, METHOD, "token by token", sampler, run, exact=False, told=False)
