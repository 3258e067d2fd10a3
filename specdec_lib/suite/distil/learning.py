"""`specdec distil train`: a draft of some of the target's layers learns the target's distributions.

An interrupted run goes on where it stopped.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder
from specdec_lib.suite.distil.command import TEXT
from specdec_lib.suite.distil.teaching import load_target, read_head, read_text

if TYPE_CHECKING:
    from specdec_lib.suite.distil.lessons import Lesson

HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and print how well the student guesses on held-out answers."""
    given = _parser().parse_args(arguments)
    from specdec_lib.models.students import assemble, build_student, save_student
    from specdec_lib.suite.distil.judging import judge
    from specdec_lib.suite.distil.lessons import read_lessons
    from specdec_lib.suite.distil.training import TrainingPlan, train_student

    layers = [int(number) for number in given.layers.split(",")]
    learnt, judged, head = split_lessons(given.text, given.lessons)
    if given.continued:
        learnt += read_lessons(read_text(given.continued), head, given.continued / "lessons")
    target = load_target()
    student = build_student(target, layers)
    if given.begin:
        student = assemble(target, given.begin)
    begins = given.begin or f"layers {given.layers}"
    plan = TrainingPlan(
        given.answer_tokens,
        batch_tokens=given.batch_tokens,
        rate=given.rate,
        seed=given.seed,
        undistilled=given.undistilled,
        origin=f"{begins}, {len(learnt)} lessons over {len(head)} tokens",
    )
    given.out.mkdir(parents=True, exist_ok=True)
    train_student(student, learnt, head, plan, given.out / f"{given.name}.checkpoint")
    about = {"layers": layers} | asdict(plan)
    save_student(student, given.out / f"{given.name}.safetensors", about)
    print(judge(student, judged, head).round(3).to_string())


def _parser() -> Parser:
    parser = Parser("distil train", "train a draft of some of the target's layers")
    parser.add_argument("name", help="of the draft, such as draft or middle")
    parser.add_argument("--layers", required=True, help="the target's layers to start from: 0,15")
    parser.add_argument("--answer-tokens", type=int, default=25_000_000, help="seen in all")
    parser.add_argument(
        "--continued", type=Path, help="a folder of `distil continue`, to learn from as well"
    )
    parser.add_argument("--begin", type=Path, help="a draft to go on from, with as many layers")
    parser.add_argument("--rate", type=float, default=1e-3, help="AdamW's largest learning rate")
    parser.add_argument("--batch-tokens", type=int, default=2048, help="of a step, in all")
    parser.add_argument("--undistilled", action="store_true", help="learn from the text alone")
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_argument("--lessons", type=Path, default=cache_folder() / "lessons")
    parser.add_common("--seed", 0)
    parser.add_common("--out", cache_folder() / "drafts")
    return parser


def split_lessons(text: Path, folder: Path) -> "tuple[list[Lesson], list[Lesson], list[int]]":
    """The lessons to learn from, those to judge on, and the head that they are about."""
    from specdec_lib.suite.distil.lessons import read_lessons

    head = read_head(folder)
    found = read_lessons(read_text(text), head, folder)
    learnt = [one for number, one in enumerate(found) if number % HELD_OUT]
    return learnt, found[::HELD_OUT], head
