"""Drafts that learn beside the target come nearer to it, an interrupted training goes on where it
stopped, and what is judged is counted right.
"""

import pytest
import torch

from specdec_lib.models.students import build_student
from specdec_lib.suite.distil import beside_target, online
from specdec_lib.suite.distil.batches import batch_of, batches
from specdec_lib.suite.distil.beside_target import RATES, OnlinePlan
from specdec_lib.suite.distil.online import (
    LayerStudent,
    ReadingStudent,
    Teacher,
    judge_online,
    train_online,
)
from specdec_lib.suite.distil.places import LADDER
from tests.test_distil import HEAD, network, texts
from tests.verbs import run

READ = (0, 1)  # layers of the target of three


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "fastest_dtype", lambda *device: torch.float32)


def students(target):
    return [
        LayerStudent("draft", build_student(target, [0]), 3e-3, window=4),
        ReadingStudent("reading", build_student(target, [0]), 3e-3, 4, 2, READ),
    ]


def divergences(learning, teacher) -> list[float]:
    batch = batch_of(texts(), torch.device("cpu"))
    output, hidden = teacher.hidden(batch.ids)
    probs = (batch.before_answers(output) @ teacher.rows.T).softmax(dim=-1)
    with torch.no_grad():
        return [float(online.loss_of(one, teacher, batch, hidden, probs)) for one in learning]


def test_students_learn_and_an_interrupted_training_goes_on(tmp_path, monkeypatch):
    target = network()
    teacher = Teacher(target, HEAD, READ)
    options = {"batch_tokens": 60, "steps": 40}
    whole = students(target)
    before = divergences(whole, teacher)
    seen = train_online(whole, teacher, texts(), **options)
    assert seen["steps"] == 40 and seen["answer_tokens"] > 40 * 10
    after = divergences(whole, teacher)
    assert all(late < early - 0.05 for early, late in zip(before, after, strict=True))

    halved = students(target)
    monkeypatch.setattr(online, "CHECKPOINT_SECONDS", -1)  # at every step
    monkeypatch.setattr(online, "store_checkpoint", stop_after(20, online.store_checkpoint))
    with pytest.raises(KeyboardInterrupt):
        train_online(halved, teacher, texts(), folder=tmp_path, **options)
    again = students(target)
    assert train_online(again, teacher, texts(), folder=tmp_path, **options) == seen
    for one, other in zip(whole, again, strict=True):
        for name, weights in one.weights().items():
            assert torch.equal(weights, other.weights()[name]), name
    for other in ({"steps": 41}, {"batch_tokens": 61}, {"seed": 1}):
        with pytest.raises(ValueError, match="of another training"):
            train_online(students(target), teacher, texts(), folder=tmp_path, **options | other)
    with pytest.raises(ValueError, match="of another training"):
        train_online(students(target), teacher, texts()[1:], folder=tmp_path, **options)


def stop_after(steps: int, store):
    def stopping(path, trained, of, step):
        store(path, trained, of, step)
        if step == steps:
            raise KeyboardInterrupt

    return stopping


def test_all_conversations_are_seen_each_time_round():
    found = batches(texts(), 60, torch.device("cpu"), seed=0)
    seen = 0
    while seen < sum(one.answer_tokens for one in texts()):
        seen += next(found).tokens
    assert seen == sum(one.answer_tokens for one in texts())


def test_a_draft_that_is_the_target_is_always_right_and_another_is_not():
    target = network()
    same = LayerStudent("same", build_student(target, [0, 1, 2]), 0.0, None)
    other = LayerStudent("other", build_student(target, [0]), 0.0, None)
    teacher = Teacher(target, range(60), ())
    rows = list(judge_online([same, other], teacher, texts(), 60))
    assert len(rows) == 2 * len(texts())
    right = {"same": 0, "other": 0}
    for row in rows:
        right[row["draft"]] += row["first"]
    tokens = sum(one.answer_tokens for one in texts())
    assert right["same"] == tokens > right["other"]


@pytest.mark.parametrize(
    "line, said",
    [
        ("", "one of steps and seconds is given, got None and None"),
        ("--steps 3 --minutes 1", "one of steps and seconds is given, got 3 and 60.0"),
        ("--minutes 0", "a training has steps or seconds above 0, got 0.0"),
        ("--steps 3 --rate 0", "the learning rates' factor is above 0 and at most 10, got 0.0"),
        ("--steps 3 --drafts big", "drafts that learn are some of .*'reading'., got .'big'."),
    ],
)
def test_a_wrong_length_is_refused_before_anything_is_judged(line, said, tmp_path):
    for judged in ((), ("--judged", str(tmp_path / "none"))):
        with pytest.raises(ValueError, match=said):
            run("distil", "online", *judged, "--out", str(tmp_path / "out"), *line.split())


def test_prompts_are_judged_on_beside_shards():
    with pytest.raises(ValueError, match=r"--prompts names files .* beside --judged"):
        run("distil", "online", "--steps", "3", "--prompts", "some.jsonl")


def test_the_drafts_of_a_plan_learn_and_those_only(monkeypatch):
    target = network()
    monkeypatch.setattr(beside_target, "assemble", lambda *given: build_student(target, [0]))
    monkeypatch.setattr(beside_target, "load_reading", lambda *given: None)

    def built(*drafts: str) -> list:
        plan = OnlinePlan(1, None, 60, LADDER, drafts or tuple(RATES), rate=0.5)
        return beside_target.built_students(target, plan)

    assert [one.name for one in built()] == ["draft", "middle", "reading"]
    assert [one.name for one in built("reading", "middle")] == ["middle", "reading"]
    assert [one.rate for one in built()] == [0.5 * RATES[one] for one in RATES]


def test_steps_or_seconds_are_given():
    target = network()
    with pytest.raises(ValueError, match="one of steps and seconds is given, got None and None"):
        train_online(students(target), Teacher(target, HEAD), texts(), batch_tokens=60)
    for none in ({"steps": 0}, {"seconds": 0.0}):
        with pytest.raises(ValueError, match="has steps or seconds above 0, got 0"):
            train_online(students(target), Teacher(target, HEAD), texts(), batch_tokens=60, **none)


def test_a_training_in_which_no_step_fits_has_seen_nothing():
    target = network()
    seen = train_online(
        students(target), Teacher(target, HEAD), texts(), batch_tokens=60, seconds=1e-12
    )
    assert seen == {"steps": 0, "answer_tokens": 0, "positions": 0, "losses": {}}
