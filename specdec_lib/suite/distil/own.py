"""`specdec distil --target DIR --out FOLDER`: drafts for a target of one's own, from the text that
it writes to a ladder's folder. Each stage writes its files whole, into the folder FOLDER/making,
and a later call goes on after what is there: with the same options the same ladder comes out,
however often the work was interrupted.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec_lib.core.files import check_writable, file_digest, write_whole
from specdec_lib.core.locking import only_process
from specdec_lib.measure.cluster import Cluster
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.models.generation import stop_tokens
from specdec_lib.models.hub import Source, load_tokenizer, model_folder
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.loading import load_model
from specdec_lib.models.students import assemble, build_student, check_layered
from specdec_lib.suite.distil.batches import batch_of
from specdec_lib.suite.distil.beside_target import (
    GUESSES,
    HELD_OUT,
    MIDDLE_WINDOW,
    RATES,
    WINDOW,
)
from specdec_lib.suite.distil.finishing import about_draft, store_matches, write_card
from specdec_lib.suite.distil.lessons import HEAD_TOKENS, frequent_tokens
from specdec_lib.suite.distil.ngrams import BYTES, GIVEN, ORDER, TEMPERATURE, sample
from specdec_lib.suite.distil.online import (
    LayerStudent,
    ReadingStudent,
    Student,
    Teacher,
    judge_online,
    learn,
    save_weights,
    train_online,
    trained_of,
)
from specdec_lib.suite.distil.own_text import (
    OwnPlan,
    part_paths,
    part_tokens,
    positions_of,
    write_parts,
)
from specdec_lib.suite.distil.shards import Conversation, read_text

BESIDE = 2  # tokens that are written per answer token: requests, and texts cut at a part's end
TRIED = 3  # steps that are timed to tell beforehand what a training takes
MADE = ("draft.safetensors", "middle.safetensors", "reading.safetensors", "katz.npz")


def make_ladder(
    target: Source, out: Path, plan: OwnPlan, *, device: str = "cpu", cluster: Cluster | None = None
) -> pd.DataFrame:
    """Make the drafts of a target and the folder of its ladder; how often each guess of a draft is
    right on held-out answers comes back.

    cluster    the workers of a Dask client, which write the text

    Raises ValueError, before any work, for a kind of target that has no drafts, for a folder that
    is another's, and if another process writes to it.
    """
    making = out / "making"
    making.mkdir(parents=True, exist_ok=True)
    check_writable(making)
    with only_process(making):
        source = str(model_folder(target).resolve()) if Path(target).is_dir() else str(target)
        _claim(making, source, plan)
        network = load_model(target, "target", device=device).model
        check_layered(network)
        if network.config.num_hidden_layers < 2:
            raise ValueError(f"a target has 2 layers or more, {target!s} has 1")
        tokenizer = load_tokenizer(target)
        students = own_students(network, plan)
        print(_foretold(network, plan, making, students), flush=True)
        write_parts(making / "text", source, network, tokenizer, plan, device, cluster)
        texts = read_text(making / "text")
        head = own_head(making, texts, network, tokenizer)
        judged = train_students(students, network, head, texts, plan, making)
        count_own(network, head, texts, plan, making)
        finish_own(out, making, source, network)
    store_matches(out, plan.matched)
    return judged


def _claim(making: Path, source: str, plan: OwnPlan) -> None:
    """Write down what is made here.  Raises ValueError if that is something else."""
    path = making / "plan.json"
    wanted = {"target": source, **asdict(plan)}
    if path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known != wanted:
            differing = sorted(name for name in wanted if known.get(name) != wanted[name])
            raise ValueError(
                f"{making} was begun with another {', '.join(differing)}; name another --out, or"
                " delete it"
            )
    write_whole(path, json.dumps(wanted, indent=1).encode())


def own_layers(count: int) -> tuple[int, ...]:
    """The layers that a middle model of a target with so many is made of: about a seventh of them,
    evenly spread with the first and the last one; none of a target of two.
    """
    wanted = max(2, round(count / 7))
    if wanted >= count:
        return ()
    return tuple(round(number * (count - 1) / (wanted - 1)) for number in range(wanted))


def layers_read(count: int) -> tuple[int, ...]:
    """The layers of a target of so many whose hidden states a draft reads: near the beginning, in
    the middle, and the last but one; fewer of a small target.
    """
    return tuple(
        sorted({min(count // 10, count - 2), count * 8 // 15, count - 2} & {*range(count - 1)})
    )


def own_students(network: PreTrainedModel, plan: OwnPlan) -> list[Student]:
    """The drafts that learn: one layer, one layer that reads the target, and a middle model."""
    count = int(network.config.num_hidden_layers)
    students: list[Student] = [
        LayerStudent("draft", build_student(network, [0]), RATES["draft"], WINDOW)
    ]
    if layers := own_layers(count):
        middle = build_student(network, layers)
        students.append(LayerStudent("middle", middle, RATES["middle"], MIDDLE_WINDOW))
    begun = build_student(network, [0])
    read = layers_read(count)
    students.append(ReadingStudent("reading", begun, RATES["reading"], WINDOW, GUESSES, read))
    return students


def _foretold(
    network: PreTrainedModel, plan: OwnPlan, making: Path, students: Sequence[Student]
) -> str:
    """What is left to do and what it takes here, by a few passes of each kind."""
    missing = [int(one.stem) for one in part_paths(making / "text", plan) if not one.is_file()]
    left = sum(part_tokens(plan, number) for number in missing)
    if (making / "judged.csv").is_file():
        return "Text and training are there; n-grams and match tables are left at most."
    length = min(256, positions_of(network))
    passes = BatchedPasses(network, plan.sequences, length + TRIED + 1)
    tokens = torch.zeros(plan.sequences, dtype=torch.long)
    seconds = _seconds(lambda at: passes.logits(tokens, tokens + length + at)) / plan.sequences
    writing = seconds * left * BESIDE
    steps = training_steps(plan, 1.3 * plan.answer_tokens)
    ids = tuple(range(5, 5 + length))
    rows = max(1, plan.batch_tokens // length)
    one = Conversation(ids, ((length // 2, length),), True, True, "chat")
    batch = batch_of([one] * rows, network.device)
    teacher = Teacher(
        network, range(min(HEAD_TOKENS, network.config.vocab_size)), read_by(students)
    )
    copies = deepcopy(list(students))
    optimizers = [trained_of(copy).optimizer for copy in copies]
    training = steps * _seconds(lambda _: learn(copies, optimizers, teacher, batch, 0.5))
    return (
        f"{left:,} answer tokens are to be written, about {_told(writing)} here; then about"
        f" {steps:,} steps of training, {_told(training)}, less what was made before; then n-grams"
        " and match tables. An interrupted run goes on."
    )


def _seconds(run: Any) -> float:
    """The seconds of one of a few runs after a first one."""
    run(0)
    began = time.perf_counter()
    for number in range(1, TRIED + 1):
        run(number)
    return (time.perf_counter() - began) / TRIED


def _told(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def training_steps(plan: OwnPlan, positions: float) -> int:
    """Steps of training that see texts of so many positions `looks` times."""
    return max(1, ceil(plan.looks * positions / plan.batch_tokens))


def own_head(
    making: Path,
    texts: Sequence[Conversation],
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
) -> list[int]:
    """The tokens that drafts score: the most frequent of the answers, and what ends a text."""
    stops = stop_tokens(network.generation_config, tokenizer)
    counted = frequent_tokens(texts, HEAD_TOKENS, stops[0] if stops else texts[0].ids[-1])
    head = sorted({*counted, *stops})
    write_whole(making / "head.json", json.dumps(head).encode())
    return head


def read_by(students: Sequence[Student]) -> tuple[int, ...]:
    """The target's layers that students read."""
    return next((one.draft.layers for one in students if isinstance(one, ReadingStudent)), ())


def train_students(
    students: Sequence[Student],
    network: PreTrainedModel,
    head: Sequence[int],
    texts: Sequence[Conversation],
    plan: OwnPlan,
    making: Path,
) -> pd.DataFrame:
    """Train the drafts beside the target and store them; the shares of held-out answers' tokens
    that each guess of a draft has right, which are stored too.
    """
    place = making / "judged.csv"
    if place.is_file():
        return pd.read_csv(place)
    teacher = Teacher(network, head, read_by(students))
    learnt = [one for number, one in enumerate(texts) if number % HELD_OUT]
    positions = sum(len(one.ids) for one in learnt)
    steps = training_steps(plan, positions)
    options = {"batch_tokens": plan.batch_tokens, "steps": steps, "seed": plan.seed}
    seen = train_online(students, teacher, learnt, folder=making, **options)
    for student in students:
        save_weights(student, making / f"{student.name}.safetensors", student.about | seen)
    rows = judge_online(students, teacher, texts[::HELD_OUT], plan.batch_tokens)
    keys = ["draft", "guess", "way"]
    sums = pd.DataFrame(rows).groupby(keys, sort=False)[["tokens", "first", "best_4"]].sum()
    found = sums[["first", "best_4"]].div(sums.tokens, axis=0).assign(tokens=sums.tokens)
    write_whole(place, found.reset_index().to_csv(index=False).encode())
    return pd.read_csv(place)


def count_own(
    network: PreTrainedModel,
    head: Sequence[int],
    texts: Sequence[Conversation],
    plan: OwnPlan,
    making: Path,
) -> None:
    """Count n-grams on what the draft writes, unless the table is there."""
    if (making / "katz.npz").is_file():
        return
    student = assemble(network, making / "draft.safetensors")
    long = [one for one in texts if len(one.ids) >= GIVEN]
    path = making / "draft-samples-000.npy"
    if not path.is_file():
        stream = BytesIO()
        np.save(stream, np.stack(list(sample(student, head, long, plan.seed, tokens=plan.sampled))))
        write_whole(path, stream.getvalue())
    table = Katz.fit(list(np.load(path)), int(student.config.vocab_size), ORDER)
    table.pruned(BYTES).save(making / "katz.npz")


def finish_own(out: Path, making: Path, source: str, network: PreTrainedModel) -> None:
    """Put what was made into the ladder's folder, with its card."""
    for name in (*MADE, "head.json", "judged.csv"):
        if (making / name).is_file():
            write_whole(out / name, (making / name).read_bytes())
    body: Any = network.get_decoder()
    size = sum(one.numel() for layer in body.layers for one in layer.parameters())
    models: dict[str, Mapping[str, Any]] = {
        "target": {"layers": len(body.layers), "parameters": size}
    }
    for name in RATES:
        if (out / f"{name}.safetensors").is_file():
            models[name] = about_draft(out / f"{name}.safetensors")
    samples = int(np.load(making / "draft-samples-000.npy", mmap_mode="r").size)
    katz = {"order": ORDER, "temperature": TEMPERATURE, "sampled_tokens": samples}
    config = file_digest(model_folder(source) / "config.json")
    card = {"target": source, "config": config, "models": models, "katz": katz}
    write_card(card, out)


def clear_making(out: Path) -> None:
    """Delete what a ladder was made of, its text among it."""
    shutil.rmtree(out / "making", ignore_errors=True)


def told_shares(judged: pd.DataFrame) -> Iterator[str]:
    """A line per draft: how often its first guess is right."""
    for name, own in judged[judged.guess == 1].groupby("draft", sort=False):
        shares = ", ".join(f"{row['first']:.2f} {row['way']}" for _, row in own.iterrows())
        yield f"{name}: the first guess is right in {shares} ({int(own.tokens.sum()):,} tokens)"
