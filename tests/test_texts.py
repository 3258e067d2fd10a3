"""The target's texts, many at a time: those of plain decoding, kept, and counted along."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from sweeps import count_decoded

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import texts as texts_module
from specdec_lib.measure.sweep.grid import Setting
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
def test_texts_are_those_of_plain_decoding(ladder, prompts, sampler, unchecked, monkeypatch):
    """Seven prompts of several lengths on three sequences; some texts end at a stop token."""
    asked = prompts[:7]
    often = plain(ladder, asked[2:3], sampler)[0][9]
    stopping = replace(ladder, stop_tokens=(often, plain(ladder, asked[5:6], sampler)[0][4]))
    wanted = plain(stopping, asked, sampler)
    monkeypatch.setattr(texts_module, "SEQUENCES", 3)
    found, other = (
        write_texts(stopping, asked, sampler, seed=seed, max_new_tokens=LENGTH) for seed in (0, 1)
    )
    assert [*map(found.of, asked)] == wanted
    lengths = [len(text) for text in wanted]
    assert min(lengths) <= 5 < max(lengths) and lengths[2] <= 10
    assert all(one[-1] in stopping.stop_tokens for one in wanted if len(one) < LENGTH)
    assert (other.tokens == found.tokens) == (sampler.temperature == 0)  # the control
    assert [*map(other.of, asked)] == plain(stopping, asked, sampler, seed=1)


def test_stored_texts_are_known_where_all_fits(ladder, prompts, tmp_path, monkeypatch):
    """None for another sampler (top-p is in no file's name), seed or prompt, or a longer text."""
    monkeypatch.setattr(texts_module, "TEXTS", tmp_path / "new")
    samplers = [Sampler(0), Sampler(1.0)]
    made = [write_texts(ladder, prompts[:2], one, seed=3, max_new_tokens=6) for one in samplers]
    for one in made:
        one.save(text_file(one.sampler))
    found = known_texts([*samplers, Sampler(0.7)], 3, prompts=prompts[:2], max_new_tokens=6)
    assert [*found] == made == [*Texts.stored(samplers)]
    assert not known_texts(samplers, 2) and not known_texts(samplers, 3, max_new_tokens=7)
    assert not known_texts(samplers, 3, prompts=prompts[:3])
    assert not known_texts([Sampler(1.0, top_p=0.9)], 3)
    for other in (prompts[3], replace(prompts[0], text="another")):
        with pytest.raises(ValueError, match="no text of the prompt"):
            found[0].of(other)


def test_a_sweep_along_texts_counts_what_decoding_counts(ladder, prompts, monkeypatch):
    """Under `look_up` without a pass of the target; a sampler without texts is decoded."""
    greedy, warm, asked = Sampler(0), Sampler(1.0), prompts[:3]
    draft, decoded = TreeDraft(ladder.draft, budget=6), count_decoded(monkeypatch)
    settings = [Setting("tree", draft, one) for one in (greedy, warm)]
    settings.append(Setting("tree", replace(draft, siblings="distinct"), warm, reject))
    run = partial(sweep, settings, asked, ladder, max_new_tokens=12, progress=False)
    known = [write_texts(ladder, asked, one, seed=2, max_new_tokens=20) for one in (greedy, warm)]
    wanted = run(seed=2)
    assert run(seed=2, texts=known[1:]).equals(wanted) and len(decoded) == 9 + 6
    assert run(seed=2, texts=known).equals(wanted) and len(decoded) == 9 + 6 + 3
    swapped = known[1].tokens | {asked[0].name: known[1].of(asked[1])}  # the control
    assert not run(seed=2, texts=[replace(known[1], tokens=swapped)]).equals(wanted)
    with pytest.raises(ValueError, match="seed 2 and up to 20 tokens"):
        run(seed=3, texts=known)


@pytest.mark.parametrize("content", [b"", b"text", bytes(8) + b"{}", None], ids=repr)
def test_a_damaged_file_of_tensors_is_refused_in_one_line(content, ladder, prompts, tmp_path):
    path = tmp_path / "texts.safetensors"
    write_texts(ladder, prompts[:1], Sampler(0), max_new_tokens=2).save(path)
    path.write_bytes(path.read_bytes()[:-3] if content is None else content)
    for read in (Texts.load, read_about, partial(assemble, ladder.target.model)):
        with pytest.raises(ValueError, match=r"texts.safetensors is damaged, or no such .*: ."):
            read(path)
