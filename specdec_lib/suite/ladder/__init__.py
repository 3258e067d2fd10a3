"""How the embedded ladder, its Katz table and its prompts are made, and from what."""

from specdec_lib.suite.ladder.making import RECIPES, Maker
from specdec_lib.suite.ladder.training import Recipe, bits_per_byte, train

__all__ = ["RECIPES", "Maker", "Recipe", "bits_per_byte", "train"]
