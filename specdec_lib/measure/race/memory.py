"""Memory: the peak of a process that does nothing but decode by one method, and whether a long run
stays where it is.

`python -m specdec_lib.measure.race.memory` is such a process; `peaks` and `flatness` start it. What
counts is the resident memory over that of an interpreter with torch; where the models are on a GPU,
the most that was allocated there.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import models_in
from specdec_lib.measure.race.contenders import HF, NOTE, Contender, ours
from specdec_lib.measure.race.families import drafts
from specdec_lib.measure.race.hugging import assisted, generates, looks_up
from specdec_lib.measure.race.lineup import REFERENCE, loaded
from specdec_lib.workload import Ladder, load_prompts

BARE = "import torch; from pathlib import Path; print(Path('/proc/self/status').read_text())"
ROOM = 600_000_000  # bytes beyond weights and KV
LONG, STEP = 10_000, 1_000  # tokens


@dataclass(frozen=True)
class Peak:
    """Bytes: at the peak over the bare interpreter, of the weights in use, and of keys and values
    of a full context.
    """

    peak: int
    weights: int
    kv: int

    @property
    def allowed(self) -> int:
        """Weights, keys and values, and 600 MB."""
        return self.weights + self.kv + ROOM


def peaks(
    contenders: Sequence[Contender], *, device: str = "auto", tokens: int = 256
) -> dict[tuple[str, str], Peak]:
    """Per method and runtime, the peak of a process of its own that decodes under each sampler it
    has here; one sampler after the other.
    """
    from tqdm.auto import tqdm

    asked: dict[tuple[str, str], list[Contender]] = {}
    for contender in contenders:
        asked.setdefault((contender.method, contender.runtime), []).append(contender)
    bare = _bare()
    found = {}
    for key, own in tqdm(asked.items(), desc="memory", mininterval=1):
        answer = _child(
            {"device": device, "tokens": tokens, "contenders": [_spelled(one) for one in own]}
        )
        found[key] = Peak(
            answer["peak"] - (0 if answer["on_gpu"] else bare), answer["weights"], answer["kv"]
        )
    return found


def flatness(
    contender: Contender, *, device: str = "auto", tokens: int = LONG
) -> list[tuple[int, int]]:
    """Tokens so far and bytes in use, every 1,000 tokens of one process that goes through prompt
    after prompt.
    """
    answer = _child(
        {"device": device, "tokens": tokens, "contenders": [_spelled(contender)], "long": True}
    )
    return [(count, used) for count, used in answer["used"]]


def resident(name: str = "VmRSS", status: str | None = None) -> int:
    """Bytes of this process in memory now; "VmHWM" is the most there were.

    The system's own record of the peak is inherited from whoever started the process, and is only
    used where there is nothing better.
    """
    path = Path("/proc/self/status")
    if status is None and not path.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )
    lines = (path.read_text() if status is None else status).splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _bare() -> int:
    if not Path("/proc/self/status").is_file():
        code = "import resource, sys, torch; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024))"
        return int(_run(["-c", code]))
    return resident("VmHWM", _run(["-c", BARE]))


def _child(order: Mapping[str, object]) -> dict:
    return json.loads(
        _run(
            [
                "-m",
                "specdec_lib.measure.race.memory",
                json.dumps(order | {"threads": torch.get_num_threads()}),
            ]
        )
    )


def _run(arguments: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a process that measures memory failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def _spelled(contender: Contender) -> dict[str, object]:
    sampler = contender.sampler
    setting = contender.setting.partition(NOTE)[0]
    return {
        "method": contender.method,
        "runtime": contender.runtime,
        "setting": setting,
        "sampler": [sampler.temperature, sampler.top_k],
    }


def _rebuilt(
    ladder: Ladder, spelled: Mapping[str, object]
) -> tuple[Contender, list[torch.nn.Module]]:
    """The contender that `_spelled` described, and the networks it uses."""
    temperature, top_k = spelled["sampler"]
    method, setting, sampler = spelled["method"], spelled["setting"], Sampler(temperature, top_k)
    target, draft = ladder.target.model, ladder.draft.model
    if method in HF:
        target = target.to(torch.bfloat16) if "bfloat16" in spelled["runtime"] else target
        grids = {
            "hf_generate": lambda: [generates(target, sampler)],
            "hf_assisted": lambda: assisted(target, draft, sampler),
        }
        grid = grids.get(method, lambda: looks_up(target, sampler))()
        return next(one for one in grid if one.setting == setting), [
            target,
            *([draft] if method == "hf_assisted" else []),
        ]
    guesser = drafts(ladder, sampler, method)[setting]
    made = ours(
        ladder.target, guesser, sampler, method=method, runtime=spelled["runtime"], setting=setting
    )
    networks = [
        getattr(model, "model", None) for model in models_in(ladder.target, guesser).values()
    ]
    return made, [network for network in networks if network is not None]  # a table is no network


def answer(order: Mapping[str, object]) -> dict[str, object]:
    """What a process of its own has to tell; see `peaks` and `flatness`."""
    torch.set_num_threads(order["threads"])
    runtime = order["contenders"][0]["runtime"]
    ladder = loaded(REFERENCE if runtime.startswith("Hugging") else runtime, order["device"])
    prompts = [ladder.encode(prompt) for prompt in load_prompts("code", "development", 100)]
    used, networks, made = [], {}, 0
    for spelled in order["contenders"]:
        contender, own = _rebuilt(ladder, spelled)
        networks |= {id(network): network for network in own}
        for number, prompt in enumerate(prompts * 100):
            made += len(
                contender.play(
                    prompt, min(order["tokens"], ladder.target.max_positions - len(prompt)), number
                ).tokens
            )
            if made >= STEP * (len(used) + 1):
                used.append((made, resident()))
            if not order.get("long") or made >= order["tokens"]:
                break
    device = ladder.target.model.device
    on_gpu = device.type == "cuda"
    weights = sum(
        number.numel() * number.element_size()
        for network in networks.values()
        for number in network.parameters()
    )
    kv = sum(_kv(network.config, network.dtype.itemsize) for network in networks.values())
    peak = torch.cuda.max_memory_allocated(device) if on_gpu else resident("VmHWM")
    return {"peak": peak, "weights": weights, "kv": kv, "used": used, "on_gpu": on_gpu}


def _kv(config: object, size: int) -> int:
    """Bytes of keys and values of a full context."""
    return 2 * config.num_hidden_layers * config.hidden_size * config.max_position_embeddings * size


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.argv[1]))))
