"""`specdec distil train`: a draft of some of the target's layers learns the target's distributions.

An interrupted run goes on where it stopped.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder
from specdec_lib.models.students import build_student, save_student
from specdec_lib.suite.distil.judging import judge
from specdec_lib.suite.distil.lessons import add_sources, read_head, read_lessons
from specdec_lib.suite.distil.text import read_text
from specdec_lib.suite.distil.training import TrainingPlan, train_student
from specdec_lib.suite.setup import load_target

HELD_OUT = 50  # every 50th conversation is judged on, and not learnt from


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a student, and print how well it guesses on held-out answers."""
    given = _parser().parse_args(arguments)
    layers = [int(number) for number in given.layers.split(",")]
    head = read_head(given.lessons)
    found = read_lessons(read_text(given.text), head, given.lessons)
    learnt = [one for number, one in enumerate(found) if number % HELD_OUT]
    if given.continued:
        learnt += read_lessons(read_text(given.continued), head, given.continued / "lessons")
    student = build_student(load_target(), layers)
    plan = TrainingPlan(
        given.answer_tokens,
        batch_tokens=given.batch_tokens,
        rate=given.rate,
        seed=given.seed,
        undistilled=given.undistilled,
        origin=f"layers {given.layers}, {len(learnt)} lessons over {len(head)} tokens",
    )
    train_student(student, learnt, head, plan, given.out / f"{given.name}.checkpoint")
    about = {"layers": layers} | asdict(plan)
    save_student(student, given.out / f"{given.name}.safetensors", about)
    print(judge(student, found[::HELD_OUT], head).round(3).to_string())


def _parser() -> Parser:
    parser = Parser("distil train", "train a draft of some of the target's layers")
    add, more = parser.add_argument, "a folder of `distil continue`, to learn from as well"
    add("name", help="of the draft, such as draft or middle")
    add("--layers", required=True, help="the target's layers to start from: 0,15")
    add("--answer-tokens", type=int, default=25_000_000, help="seen in all")
    add("--continued", type=Path, help=more)
    add("--rate", type=float, default=1e-3, help="AdamW's largest learning rate")
    add("--batch-tokens", type=int, default=2048, help="of a step, in all")
    add("--undistilled", action="store_true", help="learn from the text alone")
    add_sources(parser)
    parser.add_common("--seed", 0)
    parser.add_common("--out", cache_folder() / "drafts")
    return parser
