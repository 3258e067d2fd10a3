"""Which methods `specdec compare` compares, where the models have the parts for them: a handful of
those of `specdec bench`, none of them tuned, and Hugging Face's own.
"""

from specdec_lib.measure.settings.names import (
    ASSIST,
    AUTOREGRESSIVE,
    GENERATE,
    HUGGING_PLAIN,
    LOOKUP,
    PLAIN,
    TOKEN_BY_TOKEN,
)

ASSISTED = "Hugging Face, assisted"
EIGHT = "draft, budget 8, depth 4"
FED = f"tree of {EIGHT}; Max-Gram scout"
READER = "reading, budget 8, depth 4"  # where the ladder has a draft that reads its target
USUAL = {  # by name, a method and its setting
    PLAIN: (AUTOREGRESSIVE, TOKEN_BY_TOKEN),
    "Max-Gram, 8 copied tokens": ("n-gram", "Max-Gram, 8 tokens after 2 or more"),
    "chain of 2": ("chain", "draft, 2 tokens"),
    "chain of 4": ("chain", "draft, 4 tokens"),
    "best tree of 4": ("tree", "draft, budget 4, depth 4"),
    "best tree of 8": ("tree", EIGHT),
    "tree of 8 fed by Max-Gram": ("staged", FED),
    "fed tree of 8, beside 8 copied tokens": ("staged", f"{FED}; beside Max-Gram, 8 tokens"),
    "cascade: draft reviews Max-Gram": ("cascade", "draft, Max-Gram: 1 4 / 0 4"),
    "tree of 8 fed by n-grams": ("staged", f"tree of {EIGHT}; n-gram scout of 4"),
    "tree of 8, reading its target": ("tree", READER),
    "tree of 8, reading its target, beside 8 copied tokens": (
        "copies first",
        f"tree of {READER}, beside Max-Gram, 8 tokens",
    ),
    HUGGING_PLAIN: (GENERATE, TOKEN_BY_TOKEN),
    "Hugging Face, prompt lookup": (LOOKUP, "10 tokens, endings of up to 2"),
    ASSISTED: (ASSIST, "5 tokens, constant, confidence 0.4"),
}
