"""The target's texts: those of plain decoding, kept, and counted along."""

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
from specdec_lib.measure.sweep.grid import Setting, sweep
from specdec_lib.measure.texts import Texts, known_texts, text_file, write_texts
from specdec_lib.models.students import assemble, read_about
from specdec_lib.workload import seeds


def test_stored_texts_are_of_plain_decoding_and_known_where_all_fits(
    ladder, prompts, tmp_path, monkeypatch
):
    """None for another sampler (top-p is in no file's name), seed or prompt, or a longer text."""
    monkeypatch.setattr(texts_module, "TEXTS", tmp_path / "new")
    samplers, asked = [Sampler(0), Sampler(1.0)], prompts[:2]
    made = [write_texts(ladder, asked, one, seed=3, max_new_tokens=6) for one in samplers]
    for one in made:
        one.save(text_file(one.sampler))
    chance, limits = Chance(seeds(asked, 3)[1], Sampler(1.0)), {"max_new_tokens": 6}
    plainly = decode(ladder.target, NoDraft(), ladder.encode(asked[1]), chance, **limits)
    assert made[1].of(asked[1]) == plainly.tokens
    found = known_texts([*samplers, Sampler(0.7)], 3, prompts=asked, max_new_tokens=6)
    assert [*found] == made == [*Texts.stored(samplers)]
    assert not known_texts(samplers, 2) and not known_texts(samplers, 3, max_new_tokens=7)
    assert not known_texts(samplers, 3, prompts=prompts[:3])
    assert not known_texts([Sampler(1.0, top_p=0.9)], 3)
    for other in (prompts[3], replace(asked[0], text="another")):
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
