"""The target's texts, many at a time: those of plain decoding, and written once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import texts
from specdec_lib.measure.texts import stored_texts, write_texts
from specdec_lib.workload import Ladder, Prompt, seeds

LENGTH = 24
Texts = list[tuple[int, ...]]


def plain(ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, seed: int = 0) -> Texts:
    run = {"max_new_tokens": LENGTH, "stop_tokens": ladder.stop_tokens}
    return [
        decode(ladder.target, NoDraft(), ladder.encode(prompt), Chance(own, sampler), **run).tokens
        for prompt, own in zip(prompts, seeds(prompts, seed), strict=True)
    ]


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0), Sampler(0.8, top_k=9)], ids=str)
def test_texts_are_those_of_plain_decoding(
    ladder: Ladder, prompts: list[Prompt], sampler: Sampler
) -> None:
    """Seven prompts of several lengths on three sequences; some texts end at a stop token."""
    asked = prompts[:7]
    often = plain(ladder, asked[2:3], sampler)[0][9]
    stopping = replace(ladder, stop_tokens=(often, plain(ladder, asked[5:6], sampler)[0][4]))
    wanted = plain(stopping, asked, sampler)
    run = {"max_new_tokens": LENGTH, "sequences": 3}
    assert write_texts(stopping, asked, sampler, **run) == wanted
    lengths = [len(text) for text in wanted]
    assert min(lengths) <= 5 < max(lengths) and lengths[2] <= 10
    assert all(one[-1] in stopping.stop_tokens for one in wanted if len(one) < LENGTH)
    other = write_texts(stopping, asked, sampler, seed=1, **run)
    assert (other == wanted) == (sampler.temperature == 0)  # the control
    assert other == plain(stopping, asked, sampler, seed=1)


def test_stored_texts_are_written_once(
    ladder: Ladder, prompts: list[Prompt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, folder, calls = Sampler(1.0), tmp_path / "new", []

    def counted(*given: object, **named: object) -> Texts:
        calls.append(1)
        return write_texts(*given, **named)

    monkeypatch.setattr(texts, "write_texts", counted)

    def stored(number: int, sampler: Sampler = sampler, **changes: int) -> Texts:
        limits = {"max_new_tokens": 6} | changes
        return stored_texts(ladder, prompts[:number], sampler, folder=folder, **limits)

    first = stored(3)
    assert first == write_texts(ladder, prompts[:3], sampler, max_new_tokens=6)
    assert stored(3) == first and len(calls) == 1 == len(list(folder.iterdir()))
    assert stored(3, seed=1) != first and stored(2) == first[:2]  # the controls
    assert stored(3, max_new_tokens=5) == [text[:5] for text in first]
    assert stored(3, Sampler(0)) != first and len(calls) == 5 == len(list(folder.iterdir()))
