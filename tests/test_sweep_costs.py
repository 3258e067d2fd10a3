"""Ratios, bytes and seconds from a sweep's counts, worked out by hand; and the stacks that are
compared.
"""

import math

import pandas as pd
import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.sweep import stacks
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.ratios import per_prompt, relative, sampling_of, with_sampling
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.sweep.traffic import generation_bytes, model_shape, seconds_at
from specdec_lib.theory import Machine, ModelShape, roofline_seconds
from specdec_lib.theory.costs import pass_bytes


def rows() -> pd.DataFrame:
    common = {
        "temperature": 0.0,
        "top_k": None,
        "top_p": 1.0,
        "rule": "look_up",
        "sampling": "greedy",
    }
    plain = {
        "draft": "plain",
        "tokens": 10,
        "rounds": 10,
        "target_passes": 10,
        "target_rows": 10,
        "target_context_tokens": 50,
        "bytes": 100.0,
    }
    tree = {
        "draft": "tree",
        "tokens": 10,
        "rounds": 4,
        "target_passes": 4,
        "target_rows": 20,
        "target_context_tokens": 20,
        "bytes": 50.0,
    }
    more = {"draft_passes": 8, "draft_rows": 16, "draft_context_tokens": 40}
    return pd.DataFrame(
        [
            {"prompt": name, **common, **one}
            for name in ("a", "b", "c")
            for one in (plain, tree | more)
        ]
    )


def test_relative_divides_by_the_baseline_on_the_same_prompts():
    found = relative(rows(), "bytes", "tokens", baseline="plain").set_index("draft")
    assert (
        found.value.to_dict() == {"plain": 1.0, "tree": 0.5}
        and found.low["tree"] == found.high["tree"] == 0.5
    )
    assert (
        relative(rows(), "bytes", "tokens", baseline="plain", inverse=True)
        .set_index("draft")
        .value["tree"]
        == 2
    )
    with pytest.raises(ValueError, match=r"greedy: the baseline 'plain' has 2 prompts, 'tree' 3"):
        relative(rows().drop(index=0), "bytes", "tokens", baseline="plain")
    assert per_prompt(rows(), "bytes", baseline="plain").relative.tolist() == [2.0, 2.0, 2.0]


def test_samplers_have_names():
    names = [
        sampling_of(0, None),
        sampling_of(1.0, 50),
        sampling_of(0.7, math.nan),
        sampling_of(1.0, None, 0.9),
    ]
    assert names == ["greedy", "T = 1, top-k 50", "T = 0.7", "T = 1, top-p 0.9"]


def test_bytes_and_seconds_are_the_sums_over_all_passes_of_all_models():
    shapes = {"target": ModelShape(2, 8, 16), "draft": ModelShape(1, 4, 16)}
    plain, tree = generation_bytes(rows(), shapes)[:2]
    assert plain == pytest.approx(10 * pass_bytes(shapes["target"], 1, 5))
    assert tree == pytest.approx(
        4 * pass_bytes(shapes["target"], 5, 5) + 8 * pass_bytes(shapes["draft"], 2, 5)
    )
    machines = {"target": Machine("a", 1e3, 1e6, 0.5), "draft": Machine("b", 1e3, 1e6)}
    seconds = seconds_at(rows(), shapes, machines)[1]
    one, two = (
        roofline_seconds(shapes[name], machines[name], rows=n, context=5)
        for name, n in (("target", 5), ("draft", 2))
    )
    assert seconds == pytest.approx(4 * one + 8 * two)
    with pytest.raises(ValueError, match="'draft' ran and is not described; there are target"):
        generation_bytes(rows(), {"target": shapes["target"]})


def test_a_sweep_counts_the_context_of_every_pass(ladder, prompts):
    table = sweep(
        [Setting("chain", ChainDraft(ladder.draft, 3))],
        prompts[:1],
        ladder,
        max_new_tokens=8,
        progress=False,
    )
    made = decode(
        ladder.target,
        ChainDraft(ladder.draft, 3),
        ladder.encode(prompts[0]),
        Chance(0),
        max_new_tokens=8,
        stop_tokens=ladder.stop_tokens,
    )
    assert table.target_context_tokens[0] == sum(
        played.tree.root_position for played in made.rounds
    )
    assert table.draft_context_tokens[0] == sum(
        played.tree.root_position * played.usage["draft"].passes for played in made.rounds
    )
    shape = model_shape(ladder.target)
    assert (shape.layers, shape.width, shape.vocabulary) == (6, 384, 4096)


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0, top_k=50)], ids=["greedy", "top-k"])
def test_every_stack_writes_the_targets_own_tokens(ladder, prompts, sampler):
    drafts = {
        setting.name: setting.draft for setting in stacks.settings(ladder, [sampler])
    } | stacks.levels(ladder, sampler)
    made = {
        name: decode(
            ladder.target, draft, ladder.encode(prompts[1]), Chance(3, sampler), max_new_tokens=12
        ).tokens
        for name, draft in drafts.items()
    }
    assert len(set(made.values())) == 1 and len(drafts) == 15
    assert isinstance(drafts["target"], NoDraft)


def test_the_sampler_becomes_a_column(ladder, prompts):
    settings = [
        Setting("plain", NoDraft(), Sampler(0)),
        Setting("plain", NoDraft(), Sampler(1.0, top_k=50)),
    ]
    table = with_sampling(sweep(settings, prompts[:1], ladder, max_new_tokens=2, progress=False))
    assert table.sampling.tolist() == ["greedy", "T = 1, top-k 50"]
