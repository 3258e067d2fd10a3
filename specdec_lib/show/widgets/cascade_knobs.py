"""Knobs of a cascade, and what their values mean: a setting, prices and texts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import ipywidgets

from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, widen
from specdec_lib.show.widgets.knobs import check_box, choice, make_knobs, slider

Prices = Mapping[str, float]

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)  # what an entry may be
PRICES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)
TARGET = "target"
WIDE = "11em"  # of "middle ← Max-Gram"
LENIENCE = "how many times less likely a reviewed token may be"


@dataclass(frozen=True)
class CascadeKnobs:
    """Maps widget values to a CascadeSetting, prices and texts, and back.

    All fields are those of `cascade_explorer`.  Raises ValueError if there is no drafter or text.
    """

    drafters: tuple[str, ...]
    prices: Prices
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.drafters or not self.texts:
            raise ValueError(
                f"the explorer needs a drafter and texts, got {len(self.drafters)} drafters and"
                f" {len(self.texts)} texts"
            )

    @property
    def entries(self) -> dict[str, tuple[int, int]]:
        """Row and column of each entry of the K matrix that may be set, by its knob's name."""
        size = range(len(self.drafters))
        return {f"k{row}{column}": (row, column) for row in size for column in size[row:]}

    def values_of(self, wanted: CascadeSetting | Prices) -> dict[str, Any]:
        """The knobs' values for a setting or for prices.  Raises ValueError if they do not offer
        that setting, or a model has no price of 0 or more.
        """
        if not isinstance(wanted, CascadeSetting):
            models = [name for name in self.drafters if name != MAX_GRAM]
            if missing := [name for name in models if not wanted.get(name, -1) >= 0]:
                raise ValueError(
                    f"a price list has a price of 0 or more for {', '.join(models)},"
                    f" {', '.join(missing)} has none in {dict(wanted)}"
                )
            return {f"price_{name}": wanted[name] for name in models}
        whole = widen(wanted, self.drafters)
        for row, entries in enumerate(whole.matrix):
            if any(entries[:row]) or not set(entries[row:]) <= set(LENGTHS):
                raise ValueError(
                    f"an entry is one of {list(LENGTHS)}, in an upper triangular matrix, row {row}"
                    f" is {entries}"
                )
        if whole.lenience not in LENIENCES:
            raise ValueError(f"lenience is one of {list(LENIENCES)}, got {whole.lenience}")
        entries = {name: whole.matrix[row][column] for name, (row, column) in self.entries.items()}
        rest = {"lenience": whole.lenience, "exempt": whole.exempt_max_gram}
        return {"order": whole.drafters} | entries | rest

    def meaning(self, values: Mapping[str, Any]) -> tuple[CascadeSetting, dict[str, float], str]:
        """The setting, the prices and the name of the texts for the knobs' values."""
        size = range(len(self.drafters))
        matrix = tuple(tuple(values.get(f"k{row}{column}", 0) for column in size) for row in size)
        setting = CascadeSetting(values["order"], matrix, values["lenience"], values["exempt"])
        prices = {name: values.get(f"price_{name}", price) for name, price in self.prices.items()}
        return setting, prices, values["texts"]

    def widgets(
        self, start: Mapping[str, Any], presets: Iterable[Mapping[str, Any]]
    ) -> dict[str, ipywidgets.ValueWidget]:
        """All knobs at their start; the price knobs offer the presets' prices too."""
        orders = [one for one in permutations(self.drafters) if MAX_GRAM not in one[:-1]]
        found = {"order": choice({" ← ".join((TARGET, *one)): one for one in orders}, orders[0])}
        for name in self.entries:
            tip = f"{name.upper()}: tokens that one model wants of the other"
            found[name] = slider(LENGTHS, 0, tip)
        found["lenience"] = slider(LENIENCES, 1.0, LENIENCE)
        found["exempt"] = check_box(True, f"{MAX_GRAM}'s reviewer is never lenient")
        for name, price in self.values_of(self.prices).items():
            values = sorted({*PRICES, price, *(one[name] for one in presets if name in one)})
            label = f"price of {name.removeprefix('price_')}"
            tip = f"{label}'s pass, a target pass being 1; {price:.3g} at first"
            found[name] = slider(values, price, tip, digits=".3g", label=label)
        made = make_knobs(found | {"texts": choice(self.texts, self.texts[0])}, start)

        def label_entries(_: object = None) -> None:
            """Label each entry of the K matrix with its reviewer and its drafter."""
            models = (TARGET, *made["order"].value)
            for name, (row, column) in self.entries.items():
                made[name].description = f"{models[row]} ← {models[column + 1]}"
                made[name].style.description_width = WIDE

        label_entries()
        made["order"].observe(label_entries, names="value")
        return made
