"""What a model that remembers is held against: plain forwards, also after an interruption."""

import itertools
import random

import torch

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree


def random_tree(context: Context, guesses: int, chance: random.Random, words: int) -> TokenTree:
    """A random tree, twins included."""
    tree = TokenTree.rooted(context)
    for _ in range(guesses):
        parent = chance.randrange(len(tree))
        scores = [tree.scores[parent]]
        tree = tree.grown([chance.randrange(words)], [parent], source="draft", scores=scores)
    return tree


@torch.no_grad()
def uncached(model, context: Context, tree: TokenTree) -> torch.Tensor:
    """One plain forward per node."""
    rows, source = [], context.source
    for node in range(len(tree)):
        text = torch.tensor([context.tokens + tree.path_tokens(node)])
        texts = (text,) if source is None else (torch.tensor([source]), None, text)
        rows.append(model(*texts, use_cache=False).logits[0, -1])
    return torch.stack(rows)


def largest_error(cached, count: int, *, words: int, sources=(None, None)) -> float:
    """Random contexts (shared beginnings, going back and over, also to another source) × trees in
    two steps, in random order.
    """
    chance, worst = random.Random(1), 0.0
    committed = [0, *(chance.randrange(words) for _ in range(39))]
    for _ in range(count):
        tail = [chance.randrange(2) for _ in range(chance.randrange(4))]
        begun = committed[: chance.randrange(1, 40)]
        context = Context.of(begun + tail, sources[chance.random() < 0.2])
        tree = random_tree(context, chance.randrange(12), chance, words)
        for part in (tree.above([len(tree) // 2])[0], tree):
            error = (cached.score(context, part) - uncached(cached.model, context, part)).abs()
            worst = max(worst, float(error.max()))
    return worst


def break_once(cached, parts, name: str, call: int, words: int, sources=(None, None)) -> None:
    """Interrupt one call of a part: each case is scored as if it had not been."""
    chance, cases, calls, broken = random.Random(2), [], itertools.count(), []
    for number in range(30):
        tokens = (0, *(chance.randrange(3) for _ in range(3 + number)))
        context = Context.of(tokens, sources[number > 20])
        tree = random_tree(context, 8, chance, words)
        cases.append((context, tree, uncached(cached.model, context, tree)))
    part = next(one for one in parts if hasattr(one, name))
    real = getattr(part, name)

    def breaking(*arguments, **named):
        result = real(*arguments, **named)
        if next(calls) == call:
            broken.append(name)
            raise KeyboardInterrupt
        return result

    setattr(part, name, breaking)
    for context, tree, wanted in cases:
        try:
            found = cached.score(context, tree)
        except KeyboardInterrupt:
            found = cached.score(context, tree)
        assert torch.allclose(found, wanted, atol=1e-11)
    assert broken == [name]
