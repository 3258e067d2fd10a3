"""Memory: the peak of a process that does nothing but decode by one method, and whether a long run
stays where it is.

`python -m specdec_lib.measure.race.memory` is such a process; `peaks` and `flatness` start it. What
counts is the resident memory, sampled while it runs, over that of an interpreter with torch; where
the models are on a GPU, the most that was allocated there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil
import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import models_in
from specdec_lib.measure.race.contenders import Contender, ours
from specdec_lib.measure.race.families import drafts
from specdec_lib.measure.race.hugging import ASSIST, HF, every_setting
from specdec_lib.measure.race.lineup import NOTE
from specdec_lib.workload import Ladder, load_ladder, load_prompts

ROOM = 600_000_000  # bytes beyond weights and KV
LONG, STEP = 10_000, 1_000  # tokens
EVERY = 0.01  # seconds between two looks at a process

Spec = Mapping[str, object]  # method, runtime, setting, temperature and top_k of a contender


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
    specs: Sequence[Spec], *, device: str = "auto", tokens: int = 256
) -> dict[tuple[str, str], Peak]:
    """Per method and runtime, the peak of a process of its own that decodes under each sampler in
    turn.
    """
    from tqdm.auto import tqdm

    groups: dict[tuple[str, str], list[Spec]] = {}
    for spec in specs:
        groups.setdefault((spec["method"], spec["runtime"]), []).append(spec)
    _, bare = _run(["-c", "import torch"])
    found = {}
    for key, own in tqdm(groups.items(), desc="memory", mininterval=1):
        used, peak = _child({"device": device, "tokens": tokens, "specs": own})
        size = peak - bare if used["on_gpu"] is None else used["on_gpu"]
        found[key] = Peak(size, used["weights"], used["kv"])
    return found


def flatness(spec: Spec, *, device: str = "auto", tokens: int = LONG) -> list[tuple[int, int]]:
    """Tokens so far and bytes in use, every 1,000 tokens of one process that goes through prompt
    after prompt.
    """
    used, _ = _child({"device": device, "tokens": tokens, "specs": [spec], "long": True})
    return [(count, size) for count, size in used["used"]]


def _child(order: Mapping[str, object]) -> tuple[dict, int]:
    order = json.dumps(order | {"threads": torch.get_num_threads()})
    said, peak = _run(["-m", __name__, order])
    return json.loads(said), peak


def _run(arguments: Sequence[str]) -> tuple[str, int]:
    """What a Python process printed, and its largest resident memory in bytes."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment, peak = os.environ | {"HF_HUB_OFFLINE": "1"}, 0
    with psutil.Popen([sys.executable, *arguments], env=environment, **pipes) as process:
        while True:
            peak = max(peak, process.memory_info().rss)
            try:
                said, complaint = process.communicate(timeout=EVERY)
                break
            except subprocess.TimeoutExpired:
                pass
    if process.returncode:
        raise RuntimeError(f"a process that measures memory failed: {complaint.strip()[-500:]}")
    return said, peak


def _contender(ladder: Ladder, spec: Spec) -> tuple[Contender, list[PreTrainedModel]]:
    """The contender that a spec describes, and the networks it uses."""
    method, setting = spec["method"], spec["setting"].partition(NOTE)[0]
    sampler = Sampler(spec["temperature"], spec["top_k"] or None)
    if method in HF:
        precision = torch.bfloat16 if "bfloat16" in spec["runtime"] else torch.float32
        target, guesser = ladder.target.model.to(precision), ladder.draft.model
        grid = every_setting(method, target, guesser, sampler)
        made = next(one for one in grid if one.setting == setting)
        return made, [target, guesser] if method == ASSIST else [target]
    draft = drafts(ladder, sampler, method)[setting]
    used = list(models_in(ladder.target, draft).values())
    made = ours(ladder.target, draft, sampler, method=method, setting=setting)
    return made, [model.model for model in ladder.models if model in used]


def usage_of(order: Mapping[str, object]) -> dict[str, object]:
    """What a process of its own reports; see `peaks` and `flatness`."""
    torch.set_num_threads(order["threads"])
    runtime = order["specs"][0]["runtime"]
    reference = "reference" if runtime.startswith("Hugging") else runtime
    ladder = load_ladder(device=order["device"], runtime=reference)
    prompts = [ladder.encode(prompt) for prompt in load_prompts("code", "development", 100)]
    used, networks, made = [], {}, 0
    for spec in order["specs"]:
        contender, own = _contender(ladder, spec)
        networks |= {id(network): network for network in own}
        for number, prompt in enumerate(prompts * 100):
            count = min(order["tokens"], ladder.target.max_positions - len(prompt))
            made += len(contender.run(prompt, count, number).tokens)
            if made >= STEP * (len(used) + 1):
                used.append((made, psutil.Process().memory_info().rss))
            if not order.get("long") or made >= order["tokens"]:
                break
    device = ladder.target.model.device
    on_gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    weights = sum(number.nbytes for network in networks.values() for number in network.parameters())
    kv = sum(map(_kv_bytes, networks.values()))
    return {"weights": weights, "kv": kv, "used": used, "on_gpu": on_gpu}


def _kv_bytes(network: PreTrainedModel) -> int:
    """Bytes of keys and values of a full context."""
    config = network.config
    numbers = config.num_hidden_layers * config.hidden_size * config.max_position_embeddings
    return 2 * numbers * network.dtype.itemsize


if __name__ == "__main__":
    print(json.dumps(usage_of(json.loads(sys.argv[1]))))
