"""What the rounds of a setting cost: counts come from a replay, and prices come afterwards."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specdec_lib.measure.replay.cascade_rounds import CascadeRounds
from specdec_lib.theory import swi

TARGET = "target"


class Costs(NamedTuple):
    """Per text, its tokens at the target's price and the price of all passes."""

    worth: list[float]
    paid: list[float]


def costs_of(rounds: Sequence[CascadeRounds], prices: Mapping[str, float]) -> Costs:
    """The costs of a setting's rounds, an element per text.

    prices    of a pass, per model; Max-Gram is free

    Raises ValueError if a model that runs has no price.
    """
    if missing := [name for name in (TARGET, *rounds[0].passes) if name not in prices]:
        raise ValueError(
            f"every model that ran needs a price: {', '.join(missing)} has none; there are"
            f" {', '.join(prices) or 'none'}"
        )
    return Costs(
        [sum(one.emitted) * prices[TARGET] for one in rounds],
        [sum(count * prices[name] for name, count in passes_of(one).items()) for one in rounds],
    )


def passes_of(rounds: CascadeRounds) -> dict[str, int]:
    """The passes of every model that ran, the target's first."""
    return {TARGET: len(rounds.emitted)} | rounds.passes


def swi_of(rounds: Sequence[CascadeRounds], prices: Mapping[str, float]) -> float:
    """Standardised walltime improvement over all texts together: tokens · target's price ÷ the
    price of all passes.

    Raises ValueError if there are no texts, or a model that runs has no price.
    """
    if not rounds:
        raise ValueError("an SWI needs at least one recording, got none")
    passes: dict[str, int] = {}
    for one in rounds:
        for name, count in passes_of(one).items():
            passes[name] = passes.get(name, 0) + count
    return swi(sum(sum(one.emitted) for one in rounds), passes, prices, target=TARGET)
