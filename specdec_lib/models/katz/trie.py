"""Compiled lookups in an n-gram table, and trees of guesses from it in one call.

An entry is an n-gram, told by its last token. The entries that continue it, with one token more,
lie side by side from its `begin` to its `stop`, their last tokens rising, so that one is found by
bisection. Beside them stands the same row with the most likely token first.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64

from specdec_lib.models.fast.choices import child_rates, gaps_of, rank_noisiest
from specdec_lib.models.fast.tiles import compiled

CONSIDERED = 16  # continuations that are warped and ranked; the others are too unlikely


class Trie(NamedTuple):
    """An n-gram table as arrays over entries, each of which is an n-gram of at most `order` tokens.

    tokens           the last token of each entry
    begin, stop      where the continuations of each entry lie; equal where it has none
    weights          back-off weight of each entry as a context
    best_tokens      `tokens` with each row in the order of falling probability, a tie to the lower
    best             their probabilities
    """

    vocabulary: int
    order: int
    tokens: Int32[np.ndarray, " entries"]
    begin: Int64[np.ndarray, " entries"]
    stop: Int64[np.ndarray, " entries"]
    weights: Float64[np.ndarray, " entries"]
    best_tokens: Int32[np.ndarray, " entries"]
    best: Float64[np.ndarray, " entries"]


class Warp(NamedTuple):
    """How likely continuations are warped and ranked.

    counted_at      temperature of the text that the table was counted on
    temperature     that of the noise; 0 for none
    top_k, top_p    as of `Sampler`; all tokens are allowed by top_k = the vocabulary's size
    """

    counted_at: float
    temperature: float
    top_k: int
    top_p: float


class Guesser(NamedTuple):
    """What `grow_guesses` takes of a table and a context besides the keys of the noise.

    window    the context's last tokens, at most as many as the table looks at
    limits    the number of children by depth, and the number of guesses in all, or 0 for no limit
    match     edges of the gap's bins, and acceptance rates by bin and rank
    """

    trie: Trie
    window: Int64[np.ndarray, " known"]
    limits: tuple[Int64[np.ndarray, " depths"], int]
    warp: Warp
    match: tuple[Float64[np.ndarray, " edges"], Float64[np.ndarray, "bins ranks"]]

    @property
    def guesses(self) -> int:
        """How many guesses it makes at most."""
        widths, budget = self.limits
        return budget or int(np.cumprod(widths).sum())


NO_GUESSES = Guesser(
    Trie(0, 2, *(np.empty(0, its) for its in "i4 i8 i8 f8 i4 f8".split())),
    *(np.empty(0, np.int64), (np.empty(0, np.int64), 0), Warp(1.0, 0.0, 0, 1.0)),
    (np.empty(0), np.zeros((1, 1))),
)  # for a compiled call without an n-gram table


@compiled()
def find_token(tokens, token, begin, stop):
    """The entry from `begin` to `stop`, whose tokens rise, that ends in `token`; −1 for none."""
    entry = begin + np.searchsorted(tokens[begin:stop], token)
    return entry if entry < stop and tokens[entry] == token else -1


@compiled()
def find_contexts(trie, window):
    """The entries of the last 1, 2, … tokens of a window, as long as the table holds them."""
    entries = np.empty(len(window), np.int64)
    count = 0
    for length in range(1, len(window) + 1):
        entry = np.int64(window[len(window) - length])
        for token in window[len(window) - length + 1 :]:
            entry = find_token(trie.tokens, token, trie.begin[entry], trie.stop[entry])
            if entry < 0:
                return entries[:count]
        entries[count] = entry
        count += 1
    return entries[:count]


@compiled()
def find_likeliest(trie, window, most):
    """The most likely next tokens, best first, a tie to the lower one, and their probabilities."""
    contexts = find_contexts(trie, window)
    tokens = np.empty(most, np.int64)
    found = np.empty(most, np.float64)
    count = 0
    for length in range(len(contexts), -1, -1):
        begin = trie.begin[contexts[length - 1]] if length else 0
        stop = trie.stop[contexts[length - 1]] if length else trie.vocabulary
        longer = contexts[length] if length < len(contexts) else -1
        for place in range(begin, stop):
            token = trie.best_tokens[place]
            probability = trie.best[place]
            for context in contexts[length:]:
                probability *= trie.weights[context]
            if probability <= (found[count - 1] if count == most else 0.0):
                break  # and so is every later one
            if longer >= 0:
                its = trie.begin[longer], trie.stop[longer]
                if find_token(trie.tokens, token, its[0], its[1]) >= 0:
                    continue  # the longer context has a probability of its own for it
            at = min(count, most - 1)
            while at and (found[at - 1], -tokens[at - 1]) < (probability, -token):
                tokens[at] = tokens[at - 1]
                found[at] = found[at - 1]
                at -= 1
            tokens[at] = token
            found[at] = probability
            count = min(count + 1, most)
    return tokens[:count], found[:count]


@compiled()
def count_allowed(scaled, top_k, top_p):
    """How many of the first tokens top-k, with ties, and then top-p allow; `scaled` falls."""
    count = min(top_k, len(scaled))
    while count < len(scaled) and scaled[count] == scaled[count - 1]:
        count += 1
    masses = np.exp(scaled[:count])
    whole = masses.sum()
    before = 0.0
    allowed = 0
    while allowed < count and before < top_p * whole:
        before += masses[allowed]
        allowed += 1
    return count if top_p == 1.0 else allowed


@compiled()
def rank_continuations(trie, window, k, warp, key):
    """The k best of the max(k, 16) likeliest next tokens under a key's noise, and their gaps."""
    tokens, found = find_likeliest(trie, window, max(k, CONSIDERED))
    heat = warp.temperature if warp.temperature else 1.0
    scaled = (np.log(found) - np.log(found[0])) * (warp.counted_at / heat)
    if warp.temperature:
        count = count_allowed(scaled, warp.top_k, warp.top_p)
        order, gaps = rank_noisiest(scaled[:count], tokens[:count], k, key)
        return tokens[order], gaps
    return tokens[:k], gaps_of(scaled[: max(2, k)])[:k]


@compiled()
def choose_children(trie, window, k, warp, match, key):
    """The best next tokens, and match rates under noise or probabilities, the factors of scores."""
    if warp.temperature:
        tokens, gaps = rank_continuations(trie, window, k, warp, key)
        return tokens, child_rates(match, gaps)
    tokens, found = find_likeliest(trie, window, max(k, CONSIDERED))
    if warp.counted_at != 1.0:
        found = found**warp.counted_at
        found /= found.sum()
    return tokens[:k], found[:k]


@compiled()
def path_tokens(nodes, node, window, order):
    """The last tokens on the way to a node, of which an n-gram table looks at order − 1."""
    known = np.empty(order - 1, np.int64)
    at = order - 1
    while at and node:
        at -= 1
        known[at] = nodes[0, node]
        node = nodes[1, node]
    kept = min(at, len(window))
    known[at - kept : at] = window[len(window) - kept :]
    return known[at - kept :]


@compiled()
def grow_guesses(guesser, window, keys):
    """A guesser's tree after a window, under `keys` of noise by depth: tokens and parents, and
    scores. A budget is filled with the best, a tie to the earlier parent and then the lower rank.
    """
    trie = guesser.trie
    warp = guesser.warp
    match = guesser.match
    widths, budget = guesser.limits
    most = budget * budget if budget else np.cumprod(widths).sum()
    guesses = np.empty((2, most), np.int64)
    guess_scores = np.empty(most)
    made = 0
    size = 1 + (budget if budget else most)
    # token, parent, depth
    nodes = np.zeros((3, size), np.int64)
    scores = np.ones(size)
    node = 0
    while True:
        depth = nodes[2, node]
        if depth < len(widths) and node + 1 < size:
            known = path_tokens(nodes, node, window, trie.order)
            given = known, widths[depth], warp, match, keys[depth]
            tokens, factors = choose_children(trie, *given)
            for child in range(len(tokens)):
                guesses[0, made] = tokens[child]
                guesses[1, made] = node
                guess_scores[made] = scores[node] * factors[child]
                made += 1
        found = np.argmax(guess_scores[:made]) if budget > 0 and made > 0 else node
        if found == made or node + 1 == size or (budget > 0 and guess_scores[found] <= 0.0):
            return nodes[:2, : node + 1], scores[: node + 1]
        node += 1
        nodes[:2, node] = guesses[:, found]
        scores[node] = guess_scores[found]
        nodes[2, node] = nodes[2, guesses[1, found]] + 1
        guess_scores[found] = -1.0
