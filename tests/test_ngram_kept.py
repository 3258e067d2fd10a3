"""Katz tables: what a stored one is believed, what pruning keeps, and the edges of counting."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_ngram import CORPORA, zipf

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.katz.backoff import good_turing, taken_counts
from specdec_lib.models.katz.counts import parents, suffixes
from specdec_lib.models.katz.model import Katz


def test_no_flipped_byte_is_believed(tmp_path):
    table, path = Katz.fit(*CORPORA["uniform"]), tmp_path / "table.npz"
    table.save(path)
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            loaded = Katz.load(path)
        except ValueError:
            refused += 1
        else:  # some bytes of a zip file mean nothing
            assert loaded.order == table.order
            assert (loaded.probs([1, 2]) == table.probs([1, 2])).all()
    assert refused > len(whole) / 11 / 2


def test_a_failed_save_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path, whole = tmp_path / "table.npz", Path.write_bytes
    path.write_bytes(b"old")

    def full(place: Path, content: bytes) -> None:
        whole(place, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        Katz.fit([np.array([0, 1])], 2).save(path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_long_ngrams_of_a_large_vocabulary_do_not_overflow():
    stream = np.array([249_999, 249_998, 249_997] * 4 + [249_996])
    table, context = Katz.fit([stream], 250_000, order=6), stream[:5].tolist()
    assert table.top(context, 1)[0] == [249_997] and abs(table.probs(context).sum() - 1) < 1e-9


def test_pruning_keeps_every_suffix():
    pruned = Katz.fit([zipf(8, 20_000, 100)], 100, 4).pruned(6_000)
    links = suffixes(pruned.levels)
    for above, level, link in zip(pruned.levels, pruned.levels[1:], links[1:], strict=False):
        assert len(parents(above)) == len(level) and (above.tokens[link] == level.tokens).all()


def test_good_turing_is_used_where_it_is_sound_and_preserves_the_mass_of_the_unseen():
    counts = Katz.fit(*CORPORA["good-turing"], 2).levels[1].counts
    shares, taken = good_turing(counts), taken_counts(counts)
    assert ((shares > 0) & (shares <= 1)).all() and taken[6] == 0 and 0 < taken[1] < 1
    assert taken[np.minimum(counts, 6)].sum() == pytest.approx((counts == 1).sum(), rel=1e-4)


def test_score_is_minus_infinity_where_nothing_is_left():
    table = Katz.fit([np.array([0, 1, 0, 1])], 3)
    undiscounted, context = replace(table, taken=np.zeros_like(table.taken)), Context.of([0])
    scores = undiscounted.score(context, TokenTree.rooted(context))
    assert scores.tolist() == [[-math.inf, 0.0, -math.inf]]
    assert undiscounted.top([0], 3) == ([1], [1.0])
