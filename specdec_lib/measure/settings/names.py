"""The names of methods and settings: every stored table, figure and cache holds them, so that who
changes one here parts new tables from old ones. A name that is not built of sizes stands beside its
draft, in the selection that has it.
"""

from collections.abc import Sequence

from specdec_lib.drafts.cascade.matrix import Matrix, format_matrix

AUTOREGRESSIVE = "autoregressive"  # the method without a draft
TOKEN_BY_TOKEN = "token by token"  # its only setting
STATIC_CACHE = "token by token, static cache"  # the other one of GENERATE
GENERATE = "hf_generate"
ASSIST = "hf_assisted"
LOOKUP = "hf_prompt_lookup"
HF = (GENERATE, ASSIST, LOOKUP)
LLAMA_CPP = "llama.cpp"
PLAIN = "plain"  # what `specdec compare` calls AUTOREGRESSIVE, and below GENERATE
HUGGING_PLAIN = "Hugging Face, plain"


def chain_name(model: str, length: int, floor: float = 0.0) -> str:
    """Such as "draft, 6 tokens, floor 0.1"."""
    return f"{model}, {length} tokens{_above(floor)}"


def tree_name(model: str, budget: int, depth: int, floor: float = 0.0, deepen: float = 0.0) -> str:
    """Such as "draft, budget 8, depth 4, floor 0.1, deepen 0.3"; what is 0 is not said."""
    deeper = f", deepen {deepen:g}" if deepen else ""
    return f"{model}, budget {budget}, depth {depth}{_above(floor)}{deeper}"


def copies_name(length: int, least: int = 1) -> str:
    """Such as "Max-Gram, 8 tokens after 2 or more"."""
    after = f" after {least} or more" if least > 1 else ""
    return f"Max-Gram, {length} tokens{after}"


def cascade_name(models: Sequence[str], matrix: Matrix, width: int = 1) -> str:
    """Such as "draft, Max-Gram: 1 4 / 0 4, combs of 3"."""
    comb = f", combs of {width}" if width > 1 else ""
    return f"{', '.join(models)}, Max-Gram: {format_matrix(matrix)}{comb}"


def _above(floor: float) -> str:
    return f", floor {floor:g}" if floor else ""
