"""A reading draft is trained as it is used: its unrolled training steps equal passes that grow a
chain of guesses token by token below what the target has read.
"""

import pytest
import torch
from safetensors.torch import save

from specdec_lib.models.reading import ReadingDraft, load_reading, shifted, unrolled
from specdec_lib.models.students import build_student, pack_weights
from tests.test_distil import network

LENGTH, STEPS = 12, 3


@pytest.fixture
def parts():
    target = network()
    student = build_student(target, [1])
    draft = ReadingDraft(student)
    for projection in (draft.from_target, draft.from_own):
        torch.nn.init.normal_(projection.weight, std=2.0)
    made = torch.Generator().manual_seed(5)
    ids = torch.randint(60, (1, LENGTH), generator=made)
    hidden = [torch.randn(1, LENGTH, 32, generator=made) for _ in range(3)]
    return draft, student, ids, hidden


def grown(draft, student, ids, hidden, root: int, window: int) -> list[torch.Tensor]:
    """The draft's outputs at `root`, whose predecessor the target has read, and along the text
    below it, where the draft's own outputs stand in for the target's states: one pass a token.
    """
    layer = draft.layer
    embedded = student.model.embed_tokens(ids)
    cos, sin = student.model.rotary_emb(embedded, torch.arange(LENGTH)[None])
    inputs = embedded + draft.states_of_target(hidden)
    outputs = []
    for depth in range(STEPS):
        end = root + depth + 1
        if end > LENGTH:
            break
        if depth:
            own = draft.from_own(outputs[-1]) * 0.04
            inputs = torch.cat([inputs[:, : end - 1], embedded[:, end - 1 : end] + own], dim=1)
        seen = inputs[:, :end]
        mask = torch.full((end, end), float("-inf")).triu(1)
        behind = torch.arange(end)[:, None] - torch.arange(end)[None, :]
        mask = mask.masked_fill(behind >= window, float("-inf"))
        found = layer(
            seen, attention_mask=mask[None, None], position_embeddings=(cos[:, :end], sin[:, :end])
        )
        found = found[0] if isinstance(found, tuple) else found
        outputs.append(draft.norm(found)[:, -1:])
    return outputs


@pytest.mark.parametrize("window", [LENGTH, 5])
@torch.no_grad()
def test_an_unrolled_training_step_is_the_incremental_pass(parts, window):
    steps = unrolled(*parts, STEPS, window)
    wrong = unrolled(*parts, STEPS, window + 1) if window < LENGTH else None
    for root in range(LENGTH):
        for depth, wanted in enumerate(grown(*parts, root, window)):
            found = steps[depth][:, root + depth : root + depth + 1]
            assert torch.allclose(found, wanted, atol=1e-5), (root, depth)
    if wrong is not None:
        assert not torch.allclose(wrong[0][:, -1:], grown(*parts, LENGTH - 1, window)[0], atol=1e-3)


@torch.no_grad()
def test_what_the_target_read_changes_the_guess_after_it_only(parts):
    draft, student, ids, hidden = parts
    before = unrolled(draft, student, ids, hidden, 1, LENGTH)[0]
    changed = [one.clone() for one in hidden]
    changed[0][:, 6] += 1.0
    after = unrolled(draft, student, ids, changed, 1, LENGTH)[0]
    same = (before == after).all(dim=-1)[0].tolist()
    assert same == [True] * 7 + [False] * 5


def test_rows_are_those_of_the_token_before():
    rows = torch.arange(6.0).view(1, 3, 2)
    assert shifted(rows).tolist() == [[[0, 0], [0, 1], [2, 3]]]


def test_the_stored_draft_fits_its_target_and_another_does_not(tmp_path):
    target = network()
    draft = ReadingDraft(build_student(target, [0]))
    torch.nn.init.normal_(draft.from_target.weight)
    path = tmp_path / "reading.safetensors"
    path.write_bytes(save(pack_weights(dict(draft.named_parameters()))))
    again = ReadingDraft(build_student(target, [1]))
    load_reading(again, path)
    for name, weights in draft.named_parameters():
        step = float(weights.detach().abs().amax()) / 127
        assert torch.allclose(weights, dict(again.named_parameters())[name], atol=step)
    fewer = ReadingDraft(build_student(target, [0]), layers=(0, 1))
    with pytest.raises(ValueError, match="holds other weights than a reading draft"):
        load_reading(fewer, path)
