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
from sweeps import LENGTH, assert_same, count_decoded, settings
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure import replaying
from specdec_lib.measure.fingerprints import fingerprint, short_digest
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.row_cache import RowCache, key_of
from specdec_lib.measure.settings import staged
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.models.cached.model import CachedModel

pytestmark = pytest.mark.usefixtures("unchecked")


def files(keep):
    return sorted(keep.glob("*/*.json"))


@pytest.fixture(scope="module")
def undisturbed(ladder, prompts):
    return sweep(settings(ladder), prompts[:4], ladder, **LENGTH)


@pytest.fixture
def decoded(monkeypatch):
    return count_decoded(monkeypatch)


def test_an_interrupted_sweep_goes_on_where_it_was(
    ladder, prompts, undisturbed, tmp_path, monkeypatch
):
    """Full disks and two at once: `make faults`."""
    real, left = replaying.decode, iter(range(7))  # two prompts, and one setting of the third

    def decode(*given, **named):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(*given, **named)

    asked = (settings(ladder), prompts[:4], ladder)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(replaying, "decode", decode)
        sweep(*asked, keep=tmp_path, **LENGTH)
    assert len(files(tmp_path)) == 2
    decoded = count_decoded(monkeypatch)
    assert_same(sweep(*asked, keep=tmp_path, **LENGTH), undisturbed)
    assert len(decoded) == 6 and len(files(tmp_path)) == 4


def swept(threads, keep, prompts):
    """In another process: rows belong to a number of threads, and a new process takes its own."""
    torch.set_num_threads(threads)
    ladder = tiny_ladder()
    sweep(settings(ladder), prompts, ladder, keep=keep, **LENGTH)


def killed(after, delay, keep, prompts):
    """Run a process that sweeps, and kill it `delay` seconds after so many prompts are kept.

    It is no fork of this one, which PyTorch's threads would not survive.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["specdec_lib.measure.replaying"])
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
    """Every prompt that was kept when a process was killed is read, and none is decoded again."""
    per_prompt = undisturbed.seconds.sum() / 4
    moments = random.Random(0)
    seen = []
    for after in (0, 1, 2):
        delay = moments.uniform(0, per_prompt)
        assert killed(after, delay, tmp_path, prompts[:6]) == -signal.SIGKILL
        seen.append(len(files(tmp_path)))
    assert seen == sorted(seen) and 2 <= seen[-1] < 6
    table = sweep(settings(ladder), prompts[:6], ladder, keep=tmp_path, **LENGTH)
    assert len(decoded) == 3 * (6 - seen[-1]) and len(files(tmp_path)) == 6
    assert_same(table[:12], undisturbed)


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
    assert_same(sweep(*asked, keep=tmp_path, **LENGTH), table)
    again = path.read_text()
    assert len(decoded) == 3 and again != damage(whole)
    path.write_text(forged(again))
    with pytest.raises(AssertionError, match="accepted"):
        assert_same(sweep(*asked, keep=tmp_path, **LENGTH), table)


def test_rows_are_read_where_prompt_and_count_are_the_same(prompts, tmp_path):
    kept, turns = RowCache(tmp_path / "made"), iter(range(9))

    def rows(prompt=prompts[0], count=None):
        return kept.rows(
            key_of(prompt), lambda: [{"turn": np.int64(next(turns)), "top_k": None}], count
        )

    assert rows() == rows() == rows(count=1) == [{"turn": 0, "top_k": None}]
    others = (rows(prompts[1]), rows(replace(prompts[0], text="another")), rows(count=2))
    assert [one["turn"] for [one] in (*others, rows())] == [1, 2, 3, 3]


def test_going_on_decodes_what_is_new_alone(ladder, prompts, undisturbed, tmp_path, decoded):
    """Prompts in another order cost no work."""
    asked = settings(ladder)
    sweep(asked, prompts[1:3], ladder, keep=tmp_path, **LENGTH)
    grown = sweep(asked, prompts[:4], ladder, keep=tmp_path, **LENGTH)
    assert len(decoded) == 12 and len(files(tmp_path)) == 4
    assert_same(grown, undisturbed)
    backwards = sweep(asked, prompts[3::-1], ladder, keep=tmp_path, **LENGTH)
    names = [prompt.name for prompt in prompts[3::-1]]
    assert len(decoded) == 12 and backwards.prompt.unique().tolist() == names
    for changed in ({"seed": 1}, {"max_new_tokens": 4}):
        sweep(asked, prompts[:1], ladder, keep=tmp_path, **LENGTH | changed)
    assert len(decoded) == 18 and len(files(tmp_path)) == 6


@dataclass(frozen=True)
class Own:
    """A draft from outside the library."""

    inner: object

    def propose(self, context, chance):
        return self.inner.propose(context, chance)


def test_everything_that_decides_rows_changes_the_fingerprint(ladder):
    """Drafts that differ from a chain of 3, each in another way; samplers, rules and orders."""
    exact, chain = tiny_ladder("float64"), ChainDraft(ladder.draft, 3)
    moved = CachedModel(copy.deepcopy(ladder.draft.model), "draft")
    with torch.no_grad():
        next(moved.model.parameters()).view(-1)[7] += 1e-6
    models = [ladder.middle, CachedModel(ladder.draft.model, "other"), moved]
    models += [tiny_ladder(cut=False).draft, exact.draft]
    members = [ladder.draft, ladder.max_gram]
    drafts = [
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
    first, second = Setting("x", chain), Setting("y", chain)
    grids = [[first], *([Setting("x", draft)] for draft in drafts)]
    grids += [[first, second], [second, first], [replace(first, rule=reject)]]
    for sampler in (Sampler(1.0), Sampler(1.0, top_k=9), Sampler(1.0, top_p=0.9)):
        grids.append([replace(first, sampler=sampler)])
    found = [fingerprint(grid, ladder) for grid in grids] + [fingerprint([first], exact)]
    assert len(set(found)) == len(found) == 22


def test_the_fingerprint_of_the_same_is_the_same(ladder):
    again = tiny_ladder()
    again.target.usage = replace(again.target.usage, passes=9)
    one, other = (fingerprint(staged.staged_settings(each), each) for each in (ladder, again))
    assert one == other
    mapping, same = {"a": 1, "b": (2.0, None)}, {"b": [np.float64(2), None], "a": np.int32(1)}
    assert fingerprint(mapping, look_up) == fingerprint(same, look_up)
    arrays = (np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((3, 2), np.float32))
    assert len(set(map(fingerprint, arrays))) == 3


def test_what_cannot_be_told_apart_is_not_kept_but_can_be_swept(ladder, prompts, tmp_path):
    for strange in (object(), lambda: None, prompts[0].text.upper):
        odd = [Setting("odd", Own(NoDraft())), Setting("odder", Odd(strange))]
        assert len(sweep(odd, prompts[:1], ladder, max_new_tokens=2, progress=False)) == 2
        with pytest.raises(ValueError, match="cannot be told apart"):
            sweep(odd, prompts[:1], ladder, keep=tmp_path, **LENGTH)


@dataclass(frozen=True)
class Odd(NoDraft):
    strange: object
