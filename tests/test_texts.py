"""The target's texts: those of plain decoding, kept, and counted along."""

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
import torch
from sweeps import count_decoded, without_seconds
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import tensor_file
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import target_text, text_writing
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.row_cache import RowCache
from specdec_lib.measure.settings.setting import GREEDY, Setting
from specdec_lib.measure.target_text import (
    TargetText,
    find_text,
    known_texts,
    load_texts,
    save_texts,
    stored_texts,
    text_file,
)
from specdec_lib.measure.text_writing import write_batched, write_texts
from specdec_lib.models.students import assemble, read_about
from specdec_lib.workload import Ladder, Prompt, load_prompts, seeds

LENGTH = 24


def plainly(ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, seed: int = 0) -> list:
    """The tokens of `decode` with a draft that guesses nothing."""
    run = {"max_new_tokens": LENGTH, "stop_tokens": ladder.stop_tokens}
    return [
        decode(ladder.target, NoDraft(), ladder.encode(prompt), Chance(own, sampler), **run).tokens
        for prompt, own in zip(prompts, seeds(prompts, seed), strict=True)
    ]


def tokens_of(texts: Sequence[TargetText]) -> list[tuple[int, ...]]:
    return [text.tokens for text in texts]


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0), Sampler(0.8, top_k=9)], ids=str)
def test_many_texts_at_a_time_are_those_of_plain_decoding(
    ladder, prompts, sampler, unchecked, monkeypatch
):
    """Seven prompts of several lengths on three rows; some texts end at a stop token.

    Control: another seed gives other texts, unless they are greedy.
    """
    asked = prompts[:7]
    often = plainly(ladder, asked[2:3], sampler)[0][9]
    stopping = replace(ladder, stop_tokens=(often, plainly(ladder, asked[5:6], sampler)[0][4]))
    wanted = plainly(stopping, asked, sampler)
    monkeypatch.setattr(text_writing, "SEQUENCES", 3)
    write = partial(write_batched, stopping, asked, sampler, max_new_tokens=LENGTH)
    found, other = write(), write(seed=1)
    assert tokens_of(found) == wanted
    lengths = [len(text) for text in wanted]
    assert min(lengths) <= 5 < max(lengths) and lengths[2] <= 10
    assert all(one[-1] in stopping.stop_tokens for one in wanted if len(one) < LENGTH)
    assert (tokens_of(other) == tokens_of(found)) == (sampler.temperature == 0)
    assert tokens_of(other) == plainly(stopping, asked, sampler, seed=1)
    assert write_texts(stopping, asked, sampler, max_new_tokens=LENGTH) == found


@pytest.mark.parametrize("write", [write_texts, write_batched])
def test_an_interruption_keeps_finished_texts(
    write, ladder, prompts, unchecked, tmp_path, monkeypatch
):
    """Control: another seed, or another chat template, finds none of them."""
    asked, real, done = prompts[:5], RowCache.write, []

    def write_row(kept: RowCache, key: str, rows: list) -> None:
        real(kept, key, rows)
        done.append(key)
        if len(done) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(text_writing, "SEQUENCES", 2)
    run = partial(write, prompts=asked, sampler=Sampler(1.0), max_new_tokens=6)
    wanted = run(ladder)
    monkeypatch.setattr(RowCache, "write", write_row)
    with pytest.raises(KeyboardInterrupt):
        run(ladder, keep=tmp_path)
    assert run(ladder, keep=tmp_path) == wanted and len(done) == len(set(done)) == 5
    assert run(ladder, keep=tmp_path) == wanted and len(done) == 5
    assert run(ladder, keep=tmp_path, seed=1) != wanted and len(done) == 10
    spoken = copy.deepcopy(ladder.tokenizer)
    spoken.chat_template = "{{ messages[0].content }}!"
    run(replace(ladder, tokenizer=spoken), keep=tmp_path)
    assert len(done) == 15


def test_the_writers_do_not_take_each_others_kept_texts(ladder, prompts, unchecked, tmp_path):
    """They may differ at near-ties."""
    for write in (write_texts, write_batched, write_texts):
        write(ladder, prompts[:1], Sampler(0), max_new_tokens=2, keep=tmp_path)
    assert len([*tmp_path.iterdir()]) == 2


def test_many_texts_at_a_time_end_where_the_target_has_no_room_left(ladder, prompts, unchecked):
    short = copy.copy(ladder.target)
    short.max_positions = max(len(ladder.encode(one)) for one in prompts[:3]) + 5
    little = replace(ladder, target=short)
    found = write_batched(little, prompts[:3], Sampler(0), max_new_tokens=LENGTH)
    assert tokens_of(found) == plainly(little, prompts[:3], Sampler(0))
    assert min(map(len, tokens_of(found))) == 6
    with pytest.raises(ValueError, match="texts are written after prompts, got none"):
        write_batched(ladder, [], Sampler(0))


@pytest.mark.parametrize(
    "largest, kind", [((1 << 16) - 1, torch.uint16), (1 << 16, torch.int32), (151_642, torch.int32)]
)
def test_tokens_of_any_size_come_back_as_they_were(largest, kind, ladder, prompts, tmp_path):
    """Llama 3 and Qwen have such ids; those of 16 bits stay so, in files written before too."""
    path = tmp_path / "texts.safetensors"
    first, other = write_texts(ladder, prompts[:2], Sampler(0), max_new_tokens=2)
    made = (replace(first, tokens=(largest, 0, largest)), other)
    save_texts(made, path)
    assert load_texts(path) == made and find_text(load_texts(path), prompts[0]) == made[0]
    assert fingerprint(load_texts(path)) == fingerprint(made) != fingerprint(made[:1])
    with tensor_file(path) as file:
        assert file.get_tensor("ids").dtype == kind


def test_a_missing_file_of_texts_names_the_command_that_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(target_text, "TEXTS", tmp_path)
    said = r"temperature-1.safetensors is missing; `specdec measure texts` writes it"
    with pytest.raises(ValueError, match=said):
        stored_texts([Sampler(1.0)])


def test_stored_texts_are_known_where_all_fits(ladder, prompts, tmp_path, monkeypatch):
    """None for another sampler (top-p is in no file's name), seed or prompt, or a longer text."""
    monkeypatch.setattr(target_text, "TEXTS", tmp_path / "new")
    samplers, asked = [Sampler(0), Sampler(1.0)], prompts[:2]
    made = [write_texts(ladder, asked, one, seed=3, max_new_tokens=6) for one in samplers]
    for texts in made:
        save_texts(texts, text_file(texts[0].sampler))
    found = known_texts([*samplers, Sampler(0.7)], ladder, 3, prompts=asked, max_new_tokens=6)
    assert found == (*made[0], *made[1]) == stored_texts(samplers)
    assert not known_texts(samplers, ladder, 2) and not known_texts(
        samplers, ladder, 3, max_new_tokens=7
    )
    assert not known_texts(samplers, ladder, 3, prompts=prompts[:3])
    assert not known_texts([Sampler(1.0, top_p=0.9)], ladder, 3)
    for other in (prompts[3], replace(asked[0], text="another")):
        with pytest.raises(ValueError, match="no text of the prompt"):
            find_text(found, other)
    assert find_text(found, asked[1], samplers[1]) == made[1][1]
    with pytest.raises(ValueError, match="texts of one target, sampler, seed and limit, got"):
        save_texts(found, tmp_path / "texts.safetensors")


def test_a_sweep_along_texts_counts_what_decoding_counts(ladder, prompts, monkeypatch):
    """Under `look_up` without a pass of the target; a sampler without texts is decoded."""
    greedy, warm, asked = Sampler(0), Sampler(1.0), prompts[:3]
    draft, decoded = TreeDraft(ladder.draft, budget=6), count_decoded(monkeypatch)
    settings = [Setting("tree", draft, one) for one in (greedy, warm)]
    settings.append(Setting("tree", replace(draft, siblings="distinct"), warm, reject))
    run = partial(sweep, settings, asked, ladder, max_new_tokens=12, progress=False)
    known = [write_texts(ladder, asked, one, seed=2, max_new_tokens=20) for one in (greedy, warm)]
    wanted = without_seconds(run(seed=2))
    both = (known[1], (*known[0], *known[1]))
    some, every = (without_seconds(run(seed=2, texts=texts)) for texts in both)
    assert some.equals(wanted) and every.equals(wanted) and len(decoded) == 9 + 6 + 3
    first, second, third = known[1]
    swapped = (replace(first, tokens=second.tokens), second, third)  # the control
    other = run(seed=2, texts=swapped)
    assert not without_seconds(other).equals(wanted)
    with pytest.raises(ValueError, match="seed 2 and up to 20 tokens"):
        run(seed=3, texts=known[0])


@pytest.mark.parametrize("content", [b"", b"text", bytes(8) + b"{}", None], ids=repr)
def test_a_damaged_file_of_tensors_is_refused_in_one_line(content, ladder, prompts, tmp_path):
    path = tmp_path / "texts.safetensors"
    save_texts(write_texts(ladder, prompts[:1], Sampler(0), max_new_tokens=2), path)
    path.write_bytes(path.read_bytes()[:-3] if content is None else content)
    for read in (load_texts, read_about, partial(assemble, ladder.target.model)):
        with pytest.raises(ValueError, match=r"texts.safetensors is damaged, or no such .*: ."):
            read(path)


def test_texts_after_embedded_prompts_are_the_stored_ones_or_missing(tmp_path, monkeypatch):
    """Never written anew in silence, by another runtime."""
    monkeypatch.setattr(text_writing, "write_texts", lambda *_, **__: pytest.fail("written"))
    prompts = load_prompts("chat", "held-out", 2)
    found = text_writing.texts_after(prompts, [GREEDY], tiny_ladder())
    assert all(target_text.find_text(found, prompt, GREEDY) for prompt in prompts)
    monkeypatch.setattr(target_text, "TEXTS", tmp_path)
    with pytest.raises(ValueError, match="is missing; `specdec measure texts` writes it"):
        text_writing.texts_after(prompts, [GREEDY], tiny_ladder())


@pytest.mark.parametrize(
    "card", [{"config": "abc", "models": {}}, {"models": {"target": {"source": "mine"}}}]
)
def test_texts_of_another_target_after_embedded_prompts_are_written(card, monkeypatch):
    written = []
    monkeypatch.setattr(
        text_writing, "write_texts", lambda *given, **_: written.append(given) or ()
    )
    other = replace(tiny_ladder(), card=card)
    text_writing.texts_after(load_prompts("chat", "held-out", 2), [GREEDY], other)
    assert len(written) == 1 and other.is_own and not tiny_ladder().is_own


def test_texts_after_other_prompts_are_written_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    mine = [Prompt("mine/1", "say hello", "mine", "held-out", "here")]
    ladder = tiny_ladder()
    first = text_writing.texts_after(mine, [GREEDY], ladder, max_new_tokens=5)
    read = ladder.target.usage
    assert text_writing.texts_after(mine, [GREEDY], ladder, max_new_tokens=5) == first
    assert ladder.target.usage == read and len(first) == 1


def test_both_splits_of_every_domain_are_needed(tmp_path):
    lines = [
        {"text": text, "domain": domain, "split": split}
        for text, domain, split in (("a", "x", "development"), ("b", "x", "held-out"))
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    found = target_text.prompts_of_splits(str(file), 5, 5)
    assert {name: [len(its) for its in both] for name, both in found.items()} == {"x": [1, 1]}
    alone = {"text": "c", "domain": "y", "split": "held-out"}
    file.write_text("\n".join(map(json.dumps, [*lines, alone])))
    with pytest.raises(ValueError, match=r"needs prompts of both splits, .*; 'y' has one"):
        target_text.prompts_of_splits(str(file), 5, 5)
