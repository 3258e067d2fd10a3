"""Every kind of decoder that the installed Transformers knows, tiny and with random weights, on
every runtime: each is right, or refused when it is loaded. `python tests/kinds.py --keep FILE`
tries them one by one, each in a process of its own, and prints a table; the same command goes on
after an interruption. It exits with 1 if a kind decodes wrongly, or raises after it was loaded.
"""

import argparse
import copy
import json
import multiprocessing
import resource
import sys
import tempfile
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import torch
from caches import random_tree, uncached
from decoders import rounded
from tiny_kinds import VOCABULARY, build, kinds
from transformers import PreTrainedModel
from transformers.utils import logging

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.probing import difference
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import load_model

RIGHT, REFUSED, UNBUILT = "right", "refused at load", "not buildable"
WRONG, LATER = "WRONG", "RAISES LATER"
OUTCOMES = (RIGHT, REFUSED, UNBUILT, WRONG, LATER)
LENGTH = 14
MEMORY, SECONDS = 4 << 30, 300  # that one kind may take
RUNTIMES = ("reference", "fast", "int8")
ERROR = 5e-4  # a relative difference of float32 logits that rounding explains
ROUNDED = 0.2  # and where a number between two steps of eight bits falls to another


def outcome(kind: str, folder: Path, runtime: str = "reference") -> tuple[str, str]:
    """What becomes of a kind on a runtime, one of `OUTCOMES`, and why."""
    try:
        network, whole = build(kind)
        network.save_pretrained(folder)
        whole.save_pretrained(folder)
    except Exception as error:
        return UNBUILT, told(error)
    try:
        model = load_model(folder, "target", device="cpu", runtime=runtime)
    except ValueError as error:
        return REFUSED, told(error).replace(str(folder), "…")
    except Exception as error:
        return LATER, told(error)
    try:
        problem = wrong(model)
    except Exception as error:
        return LATER, told(error)
    return (RIGHT, "") if problem is None else (WRONG, problem)


def wrong(model: CachedModel | FastModel) -> str | None:
    """What a loaded model does wrongly; None if its logits are those of plain forwards, no draft
    changes its output, and its greedy output is that of `generate`. Of the int8 edition, whose
    model is another: if its logits are those of plain forwards with its weights and rows.
    """
    random = Random(1)
    network = model.model
    network.generation_config.eos_token_id = None
    is_int8 = isinstance(model, FastModel) and model.edition == "int8"
    same = rounded(network) if is_int8 else network
    tokens = [random.randrange(4, VOCABULARY) for _ in range(30)]
    changes = []
    for length in (1, 9, 5, 24, 30, 12):
        context = Context.of(tokens[:length])
        tree = random_tree(context, 10, random, VOCABULARY)
        changes.append(difference(model.score(context, tree), uncached(same, context, tree)))
    if max(changes) > (ROUNDED if is_int8 else ERROR):
        return f"logits of a tree differ by {max(changes):.2g} of their size"
    draft = copied(model, shaken(network))
    prompt, accepted = tokens[:8], 0
    for temperature in (0.0, 1.0):
        chance = Chance(1, Sampler(temperature))
        plain = decode(model, NoDraft(), prompt, chance, max_new_tokens=LENGTH).tokens
        guesser = TreeDraft(draft, budget=8, depth=4)
        drafted = decode(model, guesser, prompt, chance, max_new_tokens=LENGTH)
        accepted += sum(played.accepted for played in drafted.rounds)
        if drafted.tokens != plain:
            return f"a tree changes the output at T={temperature:g}"
        if temperature == 0.0 and not is_int8 and plain != generated(network, prompt):
            return "greedy output is not that of generate"
    return None if accepted else "no guess of a draft that is nearly the model was accepted"


def copied(model: CachedModel | FastModel, network: PreTrainedModel) -> CachedModel | FastModel:
    """A draft on the runtime of a model."""
    if isinstance(model, FastModel):
        return FastModel(network, "draft", edition=model.edition)
    return CachedModel(network, "draft")


def shaken(network: PreTrainedModel) -> PreTrainedModel:
    """A copy that agrees with a network often, not always."""
    other = copy.deepcopy(network)
    with torch.no_grad():
        for weights in other.parameters():
            if weights.dim() > 1:
                weights.add_(0.03 * weights.std() * torch.randn_like(weights))
    return other


@torch.no_grad()
def generated(network: PreTrainedModel, prompt: list[int]) -> tuple[int, ...]:
    """What `generate` writes greedily."""
    given = torch.tensor([prompt])
    options = {"max_new_tokens": LENGTH, "do_sample": False, "pad_token_id": 3}
    made = network.generate(given, attention_mask=torch.ones_like(given), **options)
    return tuple(made[0, len(prompt) :].tolist())


def told(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).removeprefix("ValueError: ")


def quiet() -> None:
    """What Transformers says about tiny models is not shown."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def _in_child(kind: str, runtime: str, pipe) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        pipe.send(outcome(kind, Path(folder), runtime))


def apart(kind: str, runtime: str) -> tuple[str, str]:
    """The outcome of a kind that runs in a process of its own."""
    processes = multiprocessing.get_context("fork")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=_in_child, args=(kind, runtime, there))
    child.start()
    there.close()
    try:
        found = here.recv() if here.poll(SECONDS) else (LATER, f"still running after {SECONDS} s")
    except EOFError:
        found = LATER, "its process died"
    child.kill()
    child.join()
    return found


def main(given: list[str] | None = None) -> int:
    """Try kinds on runtimes, print what became of each and how many of each outcome there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="kinds to try; all without this")
    parser.add_argument("--keep", type=Path, help="a file of outcomes, which are not tried again")
    parser.add_argument("--runtime", choices=RUNTIMES, nargs="+", default=RUNTIMES)
    asked = parser.parse_args(given)
    known: dict[tuple[str, str], list[str]] = {}
    if asked.keep is not None and asked.keep.is_file():
        for kind, runtime, found in map(json.loads, asked.keep.read_text().splitlines()):
            known[kind, runtime] = found
    counts: Counter[tuple[str, str]] = Counter()
    for kind, runtime in product(asked.kinds or kinds(), asked.runtime):
        found = known.get((kind, runtime)) or apart(kind, runtime)
        if asked.keep is not None and (kind, runtime) not in known:
            with asked.keep.open("a") as file:
                file.write(json.dumps([kind, runtime, found]) + "\n")
        counts[runtime, found[0]] += 1
        print(f"{kind:24} {runtime:10} {found[0]:16} {found[1]}", flush=True)
    for runtime in asked.runtime:
        told_of = ", ".join(f"{counts[runtime, name]} {name}" for name in OUTCOMES)
        print(f"{runtime}: {told_of}")
    return int(any(number for (_, name), number in counts.items() if name in (WRONG, LATER)))


if __name__ == "__main__":
    sys.exit(main())
