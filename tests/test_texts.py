"""The target's texts, many at a time: those of plain decoding, kept, and counted along."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import texts as texts_module
from specdec_lib.measure.sweep.grid import Setting, generations
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.texts import Texts, known_texts, text_file, write_texts
from specdec_lib.models.students import assemble, read_about
from specdec_lib.workload import Ladder, Prompt, seeds

LENGTH = 24


def plain(ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, seed: int = 0) -> list:
    run = {"max_new_tokens": LENGTH, "stop_tokens": ladder.stop_tokens}
    return [
        decode(ladder.target, NoDraft(), ladder.encode(prompt), Chance(own, sampler), **run).tokens
        for prompt, own in zip(prompts, seeds(prompts, seed), strict=True)
    ]


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0), Sampler(0.8, top_k=9)], ids=str)
def test_texts_are_those_of_plain_decoding(ladder, prompts, sampler, unchecked):
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


def test_texts_come_back_from_their_file_and_only_for_their_prompts(ladder, prompts, tmp_path):
    asked, sampler = prompts[:3], Sampler(0.9, top_k=9)
    made = Texts.written(ladder, asked, sampler, seed=1, max_new_tokens=6)
    made.save(tmp_path / "new" / "texts.safetensors")
    again = Texts.load(tmp_path / "new" / "texts.safetensors")
    assert again == made != Texts.written(ladder, asked, sampler, max_new_tokens=6)
    fresh = write_texts(ladder, asked, sampler, seed=1, max_new_tokens=6)
    assert [again.of(one) for one in asked] == fresh
    for other in (prompts[3], replace(asked[0], text="another")):
        with pytest.raises(ValueError, match="no text of the prompt"):
            again.of(other)


def test_known_texts_are_the_stored_ones_that_fit(ladder, prompts, tmp_path, monkeypatch):
    """None for another sampler (top-p is in no file's name), seed or prompt, or a longer text."""
    known = {one: text_file(one, tmp_path) for one in (Sampler(0), Sampler(1.0))}
    monkeypatch.setattr(texts_module, "text_file", lambda one: text_file(one, tmp_path))
    for sampler, path in known.items():
        Texts.written(ladder, prompts[:1], sampler, seed=3, max_new_tokens=6).save(path)
    fitting = {"prompts": prompts[:1], "max_new_tokens": 6}
    found = known_texts([Sampler(1.0), Sampler(0.7), Sampler(0)], 3, **fitting)
    assert [one.sampler for one in found] == [Sampler(1.0), Sampler(0)]
    assert not known_texts([*known], 2) and not known_texts([*known], 3, max_new_tokens=7)
    assert not known_texts([*known], 3, prompts=prompts[:2])
    assert not known_texts([Sampler(1.0, top_p=0.9)], 3)
    with pytest.raises(ValueError, match="seed 3 and up to 6 tokens"):
        next(generations([Setting("one", ladder.max_gram)], prompts[:1], ladder, texts=found))


def test_a_sweep_along_texts_counts_what_decoding_counts(ladder, prompts):
    """Under `look_up` without a pass of the target; a sampler without texts is decoded."""
    greedy, warm, asked = Sampler(0), Sampler(1.0), prompts[:3]
    draft = TreeDraft(ladder.draft, budget=6)
    settings = [Setting("tree", draft, one) for one in (greedy, warm)]
    settings.append(Setting("tree", replace(draft, siblings="distinct"), warm, reject))
    limits = {"seed": 2, "max_new_tokens": 12, "progress": False}
    known = [Texts.written(ladder, asked, one, seed=2, max_new_tokens=20) for one in (greedy, warm)]
    found, wanted = (
        sweep(settings, asked, ladder, **limits, texts=some) for some in (known, known[1:])
    )
    same = ["rule", "prompt", "tokens", "rounds", "proposed", "accepted", "tried", "stop"]
    counts = "passes", "rows", "context_tokens"
    same += [f"{name}_{what}" for name in ("target", "draft") for what in counts]
    decoded = sweep(settings, asked, ladder, **limits)
    assert found[same].equals(decoded[same]) and wanted[same].equals(decoded[same])
    clocked = [table.target_seconds.notna().tolist() for table in (found, wanted, decoded)]
    assert clocked == [[False, False, True] * 3, [True, False, True] * 3, [True] * 9]
    other = [Texts.written(ladder, asked, warm, seed=2, max_new_tokens=20)]
    other[0].tokens[asked[0].name] = other[0].tokens[asked[1].name]
    assert not sweep(settings, asked, ladder, **limits, texts=other)[same].equals(decoded[same])
    with pytest.raises(ValueError, match="seed 2 and up to 20 tokens"):
        sweep(settings, asked, ladder, seed=3, max_new_tokens=12, texts=known)


@pytest.mark.parametrize("content", [b"", b"text", bytes(8) + b"{}", None], ids=repr)
def test_a_damaged_file_of_tensors_is_refused_in_one_line(content, ladder, prompts, tmp_path):
    path = tmp_path / "texts.safetensors"
    Texts.written(ladder, prompts[:1], Sampler(0), max_new_tokens=2).save(path)
    path.write_bytes(path.read_bytes()[:-3] if content is None else content)
    for read in (Texts.load, read_about, partial(assemble, ladder.target.model)):
        with pytest.raises(ValueError, match=r"texts.safetensors is damaged, or no such .*: ."):
            read(path)
