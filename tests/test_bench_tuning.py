"""Tuning: the fastest contenders are found without racing the slow ones for long."""

import random

import pytest
from fakes import fixed_model
from test_bench import fake, text

from specdec_lib.measure.race.lineup import tune_contenders


def test_tuning_finds_the_fastest_and_shows_the_slow_ones_little() -> None:
    log: list[tuple] = []
    speeds = [3.0, 2.0, 1.0, 4.0, 5.0, 6.0]
    random.Random(0).shuffle(speeds)
    contenders = [fake(f"{speed:g}", speed, log=log) for speed in speeds]
    texts = [text(str(number)) for number in range(3)]
    ranked = tune_contenders(contenders, texts, fixed_model([0.0]), stages=(1, 2))
    assert [best.setting for best, _ in ranked] == ["1", "2"]
    assert ranked[0][1] == pytest.approx(1000)
    runs = [name for name, *_ in log]
    assert runs.count("6") == 2 and runs.count("1") == 4  # one of them is the warm-up


def test_tuning_passes_over_texts_that_loop() -> None:
    loops, calm = text("loops", (1, 2) * 20), text("calm", tuple(range(30)))
    assert loops.loops and not calm.loops
    log: list[tuple] = []
    tune_contenders([fake("x", 1.0, log=log)], [loops, calm], fixed_model([0.0]), stages=(1,))
    assert {count for _, _, count, _ in log} == {12, 30}


@pytest.mark.parametrize("contenders, texts", [([], []), ([], [text()]), ([fake("x", 1.0)], [])])
def test_tuning_says_what_it_lacks(contenders: list, texts: list) -> None:
    with pytest.raises(ValueError, match=f"got {len(contenders)} and {len(texts)}"):
        tune_contenders(contenders, texts, fixed_model([0.0]), stages=(1,))
