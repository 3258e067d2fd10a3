"""A sweep that is interrupted, damaged or grown gives the table of one left alone."""

import copy
import json
import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from pandas.testing import assert_frame_equal
from sweeps import LENGTH, count_decoded, settings
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep import stacks
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.identity import fingerprint, short_digest
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.models.cached.model import CachedModel

pytestmark = pytest.mark.usefixtures("unchecked")


def files(keep):
    return sorted(keep.glob("*/*.json"))


@pytest.fixture(scope="module")
def undisturbed(ladder, prompts):
    return sweep(settings(ladder), prompts[:6], ladder, **LENGTH)


@pytest.fixture
def decoded(monkeypatch):
    return count_decoded(monkeypatch)


def swept(threads, keep, prompts):
    """In another process: rows belong to a number of threads, and a new process takes its own."""
    torch.set_num_threads(threads)
    ladder = tiny_ladder()
    sweep(settings(ladder), prompts, ladder, keep=keep, **LENGTH)


def killed(after, delay, keep, prompts):
    """A process that sweeps, killed some time after so many prompts were kept; not a fork of this
    one, which PyTorch's threads would not survive.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["specdec_lib.workload"])
    process = context.Process(target=swept, args=(torch.get_num_threads(), keep, prompts))
    process.start()
    deadline = time.monotonic() + 300
    while len(files(keep)) < after and process.is_alive():
        assert time.monotonic() < deadline, f"{len(files(keep))} of {after} prompts are kept"
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode


def test_a_sweep_often_killed_loses_nothing(ladder, prompts, undisturbed, tmp_path, decoded):
    moments, seen = random.Random(), []
    for after in (0, 1, 2, 3):
        delay = moments.uniform(0, 0.05)  # seconds, of some 0.1 that a prompt takes
        assert killed(after, delay, tmp_path, prompts[:6]) == -signal.SIGKILL
        seen.append(len(files(tmp_path)))
    assert seen == sorted(seen) and 3 <= seen[-1] < 6
    table = sweep(settings(ladder), prompts[:6], ladder, keep=tmp_path, **LENGTH)
    assert_frame_equal(table, undisturbed)
    assert len(decoded) == 3 * (6 - seen[-1]) and len(files(tmp_path)) == 6


def forged(text):
    """The same file with other counts and the digest that fits them."""
    rows = json.loads(text.split("\n", 1)[1])
    body = json.dumps([row | {"accepted": row["accepted"] + 1} for row in rows])
    return f"{short_digest(body)}\n{body}"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"accepted": 0', '"accepted": 1', 1),
        lambda text: text.split("\n")[0],
        lambda text: f"{short_digest('[]')}\n[]",
        lambda text: "\udcff",
    ],
)
def test_a_damaged_file_is_decoded_again(damage, ladder, prompts, tmp_path, decoded):
    """Control: a forged one is not, so rows that are kept are rows that are shown."""
    asked = settings(ladder), prompts[:1], ladder
    table = sweep(*asked, keep=tmp_path, **LENGTH)
    (path,) = files(tmp_path)
    whole = path.read_text()
    assert damage(whole) != whole
    path.write_bytes(damage(whole).encode(errors="surrogateescape"))
    decoded.clear()
    assert_frame_equal(sweep(*asked, keep=tmp_path, **LENGTH), table)
    assert len(decoded) == 3 and path.read_text() != damage(whole)
    path.write_text(forged(path.read_text()))
    with pytest.raises(AssertionError, match="accepted"):
        assert_frame_equal(sweep(*asked, keep=tmp_path, **LENGTH), table)


def test_rows_are_read_where_prompt_and_count_are_the_same(prompts, tmp_path):
    kept, turns = Kept(tmp_path / "made"), iter(range(9))

    def rows(prompt=prompts[0], count=None):
        return kept.rows(prompt, lambda: [{"turn": np.int64(next(turns)), "top_k": None}], count)

    assert rows() == rows() == rows(count=1) == [{"turn": 0, "top_k": None}]
    others = (rows(prompts[1]), rows(replace(prompts[0], text="another")), rows(count=2))
    assert [one["turn"] for [one] in (*others, rows())] == [1, 2, 3, 3]


def test_going_on_decodes_what_is_new_alone(ladder, prompts, undisturbed, tmp_path, decoded):
    """And another order of prompts nothing."""
    grid = settings(ladder)
    sweep(grid, prompts[1:3], ladder, keep=tmp_path, **LENGTH)
    assert len(decoded) == 6
    grown = sweep(grid, prompts[:4], ladder, keep=tmp_path, **LENGTH)
    assert len(decoded) == 12 and len(files(tmp_path)) == 4
    assert_frame_equal(grown, undisturbed[:12])
    backwards = sweep(grid, prompts[3::-1], ladder, keep=tmp_path, **LENGTH)
    names = [prompt.name for prompt in prompts[3::-1]]
    assert len(decoded) == 12 and backwards.prompt.unique().tolist() == names
    for changed in ({"seed": 1}, {"max_new_tokens": 4}):
        sweep(grid, prompts[:1], ladder, keep=tmp_path, **LENGTH | changed)
    assert len(decoded) == 18 and len(files(tmp_path)) == 6


@dataclass(frozen=True)
class Own:
    """A draft from outside the library."""

    inner: object

    def propose(self, context, chance):
        return self.inner.propose(context, chance)


def other_drafts(ladder, exact):
    """Drafts that differ from a chain of 3, each in another way."""
    chain, members = ChainDraft(ladder.draft, 3), [ladder.draft, ladder.max_gram]
    moved = CachedModel(copy.deepcopy(ladder.draft.model), "draft")
    with torch.no_grad():
        next(moved.model.parameters()).view(-1)[7] += 1e-6
    whole_head = tiny_ladder(cut=False).draft
    models = (ladder.middle, CachedModel(ladder.draft.model, "other"), moved, whole_head, exact)
    return [
        *(ChainDraft(model, 3) for model in models),
        ChainDraft(ladder.draft, 4),
        ChainDraft(ladder.draft, 3, siblings="iid"),
        ChainDraft(ladder.draft, 3, match=MatchTable((0.7, 0.2))),
        TreeDraft(ladder.draft, budget=8),
        MaxGram(None, 8),
        MaxGram(ladder.katz.bigrams(), 8),
        from_matrix(members, ((2, 4), (0, 4))),
        from_matrix(members, ((2, 4), (0, 4)), lenience=2.0),
        Own(chain),
    ]


def test_everything_that_decides_rows_changes_the_fingerprint(ladder):
    chain, exact = ChainDraft(ladder.draft, 3), tiny_ladder("float64")
    first, second = Setting("x", chain), Setting("y", chain)
    grids = [[Setting("x", draft)] for draft in (chain, *other_drafts(ladder, exact.draft))]
    grids += [[first, second], [second, first], [replace(first, rule=reject)]]
    for sampler in (Sampler(1.0), Sampler(1.0, top_k=9), Sampler(1.0, top_p=0.9)):
        grids.append([replace(first, sampler=sampler)])
    found = [fingerprint(grid, ladder) for grid in grids] + [fingerprint([first], exact)]
    assert len(set(found)) == len(found) == 22


def test_the_fingerprint_of_the_same_is_the_same(ladder):
    again = tiny_ladder()
    again.target.usage = replace(again.target.usage, passes=9)
    one, other = (fingerprint(stacks.staged_settings(each), each) for each in (ladder, again))
    assert one == other
    mapping, same = {"a": 1, "b": (2.0, None)}, {"b": [np.float64(2), None], "a": np.int32(1)}
    assert fingerprint(mapping, look_up) == fingerprint(same, look_up)
    arrays = (np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((3, 2), np.float32))
    assert len(set(map(fingerprint, arrays))) == 3


def test_what_cannot_be_told_apart_is_not_kept_but_can_be_swept(ladder, prompts, tmp_path):
    for strange in (object(), lambda: None, prompts[0].text.upper):
        odd = [Setting("odd", Own(NoDraft())), Setting("odder", _Odd(strange))]
        assert len(sweep(odd, prompts[:1], ladder, max_new_tokens=2, progress=False)) == 2
        with pytest.raises(ValueError, match="cannot be told apart"):
            sweep(odd, prompts[:1], ladder, keep=tmp_path, **LENGTH)


@dataclass(frozen=True)
class _Odd(NoDraft):
    strange: object
