"""`specdec distil online`: goes on training the ladder's drafts, and a draft that reads the target
from the ladder's one-layer draft, beside the target.
"""

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from transformers import LlamaForCausalLM

from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.commands.commandline import Parser, write_csv
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.hub import load_tokenizer
from specdec_lib.models.reading import load_reading
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.finishing import LADDER
from specdec_lib.suite.distil.lessons import HEAD_TOKENS, frequent_tokens
from specdec_lib.suite.distil.online import (
    LayerStudent,
    ReadingStudent,
    Student,
    Teacher,
    check_training_length,
    judge_online,
    save_weights,
    train_online,
)
from specdec_lib.suite.distil.shards import Conversation, add_text, read_text
from specdec_lib.suite.setup import load_target, prepare_target
from specdec_lib.workload import Prompt, load_prompts
from specdec_lib.workload.encoding import encode_prompt

ONLINE = DATA / "online"
HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from
WINDOW = 128  # tokens that the one-layer drafts see
MIDDLE_WINDOW = 512  # tokens that the middle model sees
RATES = {"draft": 2e-3, "middle": 1e-3, "reading": 2e-3}  # AdamW's
WRITTEN = 128  # tokens after a prompt that is judged on
TOGETHER = 64  # such prompts at a time
GUESSES = 3  # that the reading draft learns to make in a row


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge the ladder's drafts, train them, and judge them again."""
    given = _options(arguments)
    text = read_text(given.text)
    judged = {"own": text[::HELD_OUT], "kept-out": read_text(given.judged)}
    names = [path.stem for path in given.prompts]
    if len({*names, *judged}) < len(names) + len(judged):
        raise ValueError(f"prompt files are named apart, and neither own nor kept-out, got {names}")
    target = load_target(given.device)
    for path in given.prompts:
        judged[path.stem] = written_after(target, load_prompts(path))
    before = judge_stored(target, judged, given.batch_tokens)
    head = frequent_tokens(text, HEAD_TOKENS, target.generation_config.eos_token_id)
    write_whole(given.out / "head.json", json.dumps(head).encode())
    students = built_students(target, given.begin)
    teacher = Teacher(target, head)
    torch.manual_seed(0)
    seen = train_online(
        students,
        teacher,
        [one for number, one in enumerate(text) if number % HELD_OUT],
        batch_tokens=given.batch_tokens,
        steps=given.steps,
        seconds=given.seconds,
        folder=given.out if given.steps else None,
    )
    for student in students:
        save_weights(student, given.out / f"{student.name}.safetensors", student.about | seen)
    table = pd.concat([before, judged_rows(students, teacher, judged, given.batch_tokens, "now")])
    write_csv(table, given.out / "judged.csv")
    print(seen)
    print(summary(table).to_string())


def _options(arguments: Sequence[str] | None) -> Namespace:
    """The options, with the seconds of training."""
    parser = Parser("distil online", "go on training the ladder's drafts beside the target")
    add = parser.add_argument
    add_text(parser)
    add("--judged", type=Path, required=True, help="a folder of shards that are judged on too")
    add("--steps", type=int, help="of training")
    add("--minutes", type=float, help="of training, in place of --steps")
    add("--batch-tokens", type=int, default=8192, help="of a step, padding included")
    add("--device", default="cpu", help="cpu or cuda")
    add("--prompts", type=Path, nargs="*", default=[], help="prompt files that are judged on too")
    add("--begin", type=Path, default=ONLINE, help="drafts to go on from; else the ladder's")
    parser.add_common("--out", cache_folder() / "online")
    given = parser.parse_args(arguments)
    given.seconds = None if given.minutes is None else given.minutes * 60
    check_training_length(given.steps, given.seconds)
    return given


def written_after(target: LlamaForCausalLM, prompts: Sequence[Prompt]) -> list[Conversation]:
    """What the target writes after each prompt in float32, greedily and drawn at temperature 1."""
    tokenizer = load_tokenizer(prepare_target())
    end = target.generation_config.eos_token_id
    given = [list(encode_prompt(tokenizer, prompt)) for prompt in prompts]
    order = sorted(range(len(given)), key=lambda number: len(given[number]))
    generator = torch.Generator(target.device).manual_seed(0)
    found = []
    for first in range(0, len(order), TOGETHER):
        group = order[first : first + TOGETHER]
        ids = [given[number] for number in group]
        for greedy in (True, False):
            heat = torch.full((len(ids),), 0.0 if greedy else 1.0, device=target.device)
            positions = max(map(len, ids)) + WRITTEN
            passes = BatchedPasses(target, len(ids), positions, dtype=torch.float32)
            texts = [list(one) for one in ids]
            logits = torch.cat([passes.read([row], [one], [0]) for row, one in enumerate(ids)])
            for _ in range(WRITTEN):
                chosen = draw(logits, heat, generator, greedy=heat == 0).tolist()
                for text, token in zip(texts, chosen, strict=True):
                    text.append(token)
                places = torch.tensor([len(text) - 1 for text in texts])
                logits = passes.logits(torch.tensor(chosen), places)
            for number, text, own in zip(group, texts, ids, strict=True):
                answer = text[len(own) :]
                size = answer.index(end) + 1 if end in answer else len(answer)
                span = (len(own), len(own) + size)
                kind = prompts[number].domain
                found.append(Conversation(tuple(text[: span[1]]), (span,), greedy, True, kind))
    return found


def built_students(target: LlamaForCausalLM, folder: Path) -> list[Student]:
    """The drafts of a folder, to go on learning. Those that it lacks are the ladder's; a reading
    draft begins as the ladder's one-layer draft.
    """

    def stored(name: str) -> Path:
        own = folder / f"{name}.safetensors"
        return own if own.is_file() else LADDER / f"{name}.safetensors"

    draft = assemble(target, stored("draft"))
    middle = assemble(target, stored("middle"))
    again = assemble(target, LADDER / "draft.safetensors")
    reading = ReadingStudent("reading", again, RATES["reading"], WINDOW, GUESSES)
    if (folder / "reading.safetensors").is_file():
        load_reading(reading.draft, folder / "reading.safetensors")
    return [
        LayerStudent("draft", draft, RATES["draft"], WINDOW),
        LayerStudent("middle", middle, RATES["middle"], MIDDLE_WINDOW),
        reading,
    ]


def judge_stored(
    target: LlamaForCausalLM,
    judged: dict[str, list[Conversation]],
    batch_tokens: int,
) -> pd.DataFrame:
    """Rows of the ladder's drafts as they are: without a window, and with one."""
    teacher = Teacher(target, json.loads((LADDER / "head.json").read_text(encoding="utf-8")))
    draft = assemble(target, LADDER / "draft.safetensors")
    middle = assemble(target, LADDER / "middle.safetensors")
    students = [
        LayerStudent("draft, all", draft, 0.0, None),
        LayerStudent("draft", draft, 0.0, WINDOW),
        LayerStudent("middle, all", middle, 0.0, None),
        LayerStudent("middle", middle, 0.0, MIDDLE_WINDOW),
    ]
    return judged_rows(students, teacher, judged, batch_tokens, "before")


def judged_rows(
    students: Sequence[Student],
    teacher: Teacher,
    judged: dict[str, list[Conversation]],
    batch_tokens: int,
    when: str,
) -> pd.DataFrame:
    """What `judge_online` counts, summed by set, kind and length of the prompt."""
    rows = []
    for name, conversations in judged.items():
        found = pd.DataFrame(judge_online(students, teacher, conversations, batch_tokens))
        rows.append(found.assign(text=name, when=when))
    table = pd.concat(rows)
    table["prompts"] = 1
    table["long"] = table.pop("prompt_tokens") > 450
    keys = ["when", "text", "draft", "guess", "kind", "way", "long"]
    return table.groupby(keys, as_index=False).sum()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of right first guesses and best four, by set, draft, way and length of the prompt."""
    keys = ["text", "long", "way", "draft", "guess", "when"]
    sums = table.groupby(keys)[["tokens", "first", "best_4"]].sum()
    shares = sums[["first", "best_4"]].div(sums["tokens"], axis=0).round(3)
    return shares.assign(tokens=sums["tokens"])
