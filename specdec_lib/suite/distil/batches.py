"""Conversations as padded batches to learn from."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from specdec_lib.models.network_passes import padded_ids
from specdec_lib.suite.distil.shards import Conversation


class Batch(NamedTuple):
    """Conversations of similar length, padded.

    taught    places, in the flattened ids, before a token of an answer
    """

    ids: Int[Tensor, "batch length"]
    taught: Int[Tensor, " answers"]

    @property
    def tokens(self) -> int:
        """How many tokens the answers have."""
        return len(self.taught)

    def before_answers(
        self, output: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "answers width"]:
        """The rows of what stands at each position that are before a token of an answer."""
        return output.flatten(0, 1)[self.taught]


def batches(
    conversations: Sequence[Conversation], tokens: int, device: torch.device, seed: int
) -> Iterator[Batch]:
    """Batches without end: each time round all conversations are seen once, those of similar
    length together, in another order.

    tokens    of a batch at most, padding included, unless one conversation is longer
    """
    random = Random(seed)
    while True:
        lengths = [len(one.ids) * (1 + random.random() * 0.1) for one in conversations]
        groups = grouped(conversations, lengths, tokens)
        random.shuffle(groups)
        for group in groups:
            yield batch_of(group, device)


def batch_of(conversations: Sequence[Conversation], device: torch.device) -> Batch:
    """Conversations as one batch."""
    ids = padded_ids([one.ids for one in conversations], device)
    taught = [
        row * ids.shape[1] + place
        for row, one in enumerate(conversations)
        for first, end in one.answers
        for place in range(first - 1, end - 1)
    ]
    return Batch(ids, torch.tensor(taught, device=device))


def grouped(
    conversations: Sequence[Conversation], lengths: Sequence[float], tokens: int
) -> list[list[Conversation]]:
    """Conversations of similar length together, `tokens` of a group at most with padding."""
    groups: list[list[Conversation]] = [[]]
    for number in sorted(range(len(conversations)), key=lengths.__getitem__):
        one = conversations[number]
        longest = max(len(each.ids) for each in [*groups[-1], one])
        if groups[-1] and (len(groups[-1]) + 1) * longest > tokens:
            groups.append([])
        groups[-1].append(one)
    return groups
