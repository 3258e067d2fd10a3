"""Katz tables: against a slow reference and a case by hand, stored and pruned, at the edges."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from fakes import assert_refused

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.katz.counts import suffixes
from specdec_lib.models.katz.model import GRAIN, Katz, back_off


def zipf(seed: int, size: int, vocabulary: int) -> np.ndarray:
    return np.minimum(np.random.default_rng(seed).zipf(1.3, size) - 1, vocabulary - 1)


CORPORA = {
    "uniform": ([np.random.default_rng(0).integers(0, 7, 400)], 7),
    "zipf in many streams": (np.array_split(zipf(1, 4000, 60), 97), 60),
    "good-turing": ([zipf(2, 20000, 300)], 300),
    "saturated": ([np.random.default_rng(3).integers(0, 3, 3000)], 3),
    "constant": ([np.zeros(50, int)], 3),
    "alternating": ([np.array([0, 1] * 100)], 2),
    "single tokens": ([np.array([token]) for token in (0, 1, 1, 3)], 5),
    "a cycle and one slip": ([np.array([0, 1, 2, 3] * 30 + [0, 2])], 4),
    "frequent bigrams, rare trigrams": ([np.array([0, 1, 2] * 20 + [3, 1, 2])], 6),
    "empty streams": ([np.array([], int), np.array([4, 2, 4]), np.array([], int)], 5),
}
# how many tokens are seen so often: raw Good-Turing discounts fall below 0, and rise above 1
SEEN = {1: 12, 2: 3, 3: 9, 4: 2, 5: 7, 6: 1}
CORPORA["discounts out of range"] = (
    [np.array([r, 10 + n]) for r, count in SEEN.items() for n in range(count) for _ in range(r)],
    30,
)
CASES = [
    pytest.param(*corpus, order, id=f"{name}, order {order}")
    for name, corpus in CORPORA.items()
    for order in range(1, 6)
]


class SlowKatz:
    """The definition, with dictionaries and recursion."""

    def __init__(self, streams: list[np.ndarray], vocabulary: int, order: int) -> None:
        self.vocabulary, self.order = vocabulary, order
        self.rows: dict[tuple, Counter] = defaultdict(Counter)
        for stream in streams:
            for at in range(len(stream)):
                for length in range(min(order, at + 1)):
                    self.rows[tuple(stream[at - length : at].tolist())][int(stream[at])] += 1
        self.taken = {}
        for length in range(1, order):
            counts = [c for h, row in self.rows.items() if len(h) == length for c in row.values()]
            self.taken[length] = self._taken(Counter(counts))

    def _taken(self, n: Counter) -> list[float]:
        found = [(n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else 0.5)] * 6
        if all(n[r] for r in range(1, 7)) and 6 * n[6] != n[1]:
            common = 6 * n[6] / n[1]
            steps = [(r, (r + 1) * n[r + 1] / (r * n[r])) for r in range(1, 6)]
            discounts = [(r, (step - common) / (1 - common)) for r, step in steps]
            if all(0 < d <= 1 for _, d in discounts):
                found = [*((1 - d) * r for r, d in discounts), 0.0]
        return [0.0, *(math.floor(one / GRAIN) * GRAIN for one in found)]

    def probs(self, context: tuple[int, ...]) -> list[float]:
        row = self.rows[()] if not context else self.rows.get(context, {})
        total = sum(row.values())
        if not context:
            return [(row[w] + 1) / (total + self.vocabulary) for w in range(self.vocabulary)]
        shorter = self.probs(context[1:])
        if not total:
            return shorter
        taken = self.taken[len(context)]
        seen = {w: (c - taken[min(c, 6)]) / total for w, c in row.items()}
        left = 1 - sum(seen.values())
        unseen = sum(p for w, p in enumerate(shorter) if w not in seen)
        if unseen < 1e-13:
            return [seen.get(w, 0.0) / sum(seen.values()) for w in range(self.vocabulary)]
        return [seen.get(w, left / unseen * shorter[w]) for w in range(self.vocabulary)]


def contexts(streams: list[np.ndarray], vocabulary: int, order: int) -> list[tuple[int, ...]]:
    """Seen ones, the ends of streams, and some that were never seen."""
    random = np.random.default_rng(5)
    text = np.concatenate(streams)
    starts = random.integers(0, len(text), 25)
    seen = [tuple(text[at : at + order - 1].tolist()) for at in starts]
    ends = [tuple(stream[max(0, len(stream) - order + 1) :].tolist()) for stream in streams[:5]]
    never = [tuple(random.integers(0, vocabulary, order - 1).tolist()) for _ in range(10)]
    return [(), *seen, *ends, *never]


def is_distribution(row: np.ndarray) -> bool:
    return row.dtype == np.float64 and row.min() >= 0 and abs(row.sum() - 1) < 1e-9


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("streams", "vocabulary", "order"), CASES)
def test_every_distribution_is_the_slow_references_and_top_its_largest(streams, vocabulary, order):
    table, slow = Katz.fit(streams, vocabulary, order), SlowKatz(streams, vocabulary, order)
    for context in contexts(streams, vocabulary, order):
        distribution = table.probs(context)
        assert is_distribution(distribution)
        np.testing.assert_allclose(distribution, slow.probs(context), rtol=1e-9, atol=1e-12)
        for m in (1, 3, 16):
            tokens, probabilities = table.top(context, m)
            largest = sorted(distribution.tolist(), reverse=True)[:m]
            assert probabilities == [p for p in largest if p > 0]
            assert distribution[tokens].tolist() == probabilities
            assert len(set(tokens)) == len(tokens)


def test_a_tiny_distribution_is_the_one_computed_by_hand():
    table = Katz.fit([np.array([0, 1, 0, 1, 0, 2])], 3, order=2)  # N_1 = 1, N_2 = 2: D = 1/5
    assert table.probs([0]) == pytest.approx([0.4 / 3, 1.8 / 3, 0.8 / 3], abs=1e-6)
    assert table.probs([2]) == pytest.approx([4 / 9, 3 / 9, 2 / 9])


TABLE = Katz.fit(*CORPORA["uniform"])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: Katz.fit([], 4, 3), "got"),
        (lambda: Katz.fit([np.array([4])], 4, 3), "got"),
        (lambda: Katz.fit([np.array([1])], 4, 0), "got 4, 0"),
        (lambda: TABLE.probs([7]), "0…6, got 7"),
        (lambda: TABLE.pruned(100), "unigrams alone take"),
    ],
)
def test_what_has_no_distribution_is_refused(call, said):
    assert_refused(call, said)


@pytest.mark.parametrize("order", [1, 3])
def test_a_saved_table_comes_back_exactly(tmp_path, order):
    table = Katz.fit(*CORPORA["zipf in many streams"], order)
    table.save(tmp_path / "table.npz")
    loaded = Katz.load(tmp_path / "table.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["table.npz"] and loaded.order == order
    assert (loaded.taken == table.taken).all()
    for ours, theirs in zip(table.levels, loaded.levels, strict=True):
        assert all((vars(ours)[name] == vars(theirs)[name]).all() for name in vars(ours))


@pytest.mark.parametrize(("order", "share"), [(2, 0.9), (2, 0.2), (3, 0.5), (4, 0.9), (4, 0.2)])
def test_a_pruned_table_fits_and_keeps_its_probabilities(tmp_path, share, order):
    table = Katz.fit([zipf(7, 30_000, 200)], 200, order)
    table.save(tmp_path / "whole.npz")
    limit = int(share * (tmp_path / "whole.npz").stat().st_size) + 500
    pruned = table.pruned(limit)
    pruned.save(tmp_path / "pruned.npz")
    assert (tmp_path / "pruned.npz").stat().st_size <= limit and 0 < pruned.ngrams < table.ngrams
    least = [int(level.counts.min()) for level in pruned.levels[1:] if len(level)]
    assert least == sorted(least)
    kept, whole = (back_off(one.levels, one.taken)[0] for one in (pruned, table))
    for depth in range(1, order):
        mask = table.levels[depth].counts >= pruned.levels[depth].counts.min(initial=10**9)
        assert (kept[depth] == whole[depth][mask]).all()
    for context in contexts([zipf(7, 30_000, 200)], 200, order):
        assert is_distribution(pruned.probs(context))
    links = suffixes(pruned.levels)
    for above, level, link in zip(pruned.levels, pruned.levels[1:], links[1:], strict=False):
        assert (above.tokens[link] == level.tokens).all()  # every suffix is kept


def test_a_missing_or_cut_file_and_flipped_bytes_are_named_with_the_remedy(tmp_path):
    table, path = Katz.fit(*CORPORA["uniform"]), tmp_path / "table.npz"
    with pytest.raises(ValueError, match=r"table\.npz .*distil ngrams"):
        Katz.load(path)
    table.save(path)
    whole, refused = path.read_bytes(), 0
    places = range(0, len(whole), 11)
    flipped = [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in places]
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:-1], *flipped):
        path.write_bytes(content)
        try:
            loaded = Katz.load(path)
        except ValueError as error:
            refused += "distil ngrams" in str(error)
        else:  # some bytes of a zip file mean nothing
            assert (loaded.probs([1, 2]) == table.probs([1, 2])).all()
    assert refused > 4 + len(flipped) / 2


def test_long_ngrams_of_a_large_vocabulary_do_not_overflow():
    stream = np.array([249_999, 249_998, 249_997] * 4 + [249_996])
    table, context = Katz.fit([stream], 250_000, order=6), stream[:5].tolist()
    assert table.top(context, 1)[0] == [249_997] and abs(table.probs(context).sum() - 1) < 1e-9


def test_score_is_minus_infinity_where_nothing_is_left():
    table = Katz.fit([np.array([0, 1, 0, 1])], 3)
    undiscounted, context = replace(table, taken=np.zeros_like(table.taken)), Context.of([0])
    scores = undiscounted.score(context, TokenTree.rooted(context))
    assert scores.tolist() == [[-math.inf, 0.0, -math.inf]]
    assert undiscounted.top([0], 3) == ([1], [1.0])
    with pytest.raises(ValueError, match="m is at least 1, got 0"):
        undiscounted.top([0], 0)
