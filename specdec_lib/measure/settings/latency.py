"""Which drafts `specdec measure latency` times, and notebook 05 shows: small and large ones of four
methods, whose seconds outside the models are fitted by method.
"""

from collections.abc import Mapping

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade.matrix import format_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

CHAINS = (1, 2, 3, 4, 6, 8)  # lengths
MIDDLE_CHAINS = (2, 4)
TREES = ((2, 2), (4, 3), (8, 4), (12, 6), (16, 6), (32, 8))  # budget and depth
FED_TREES = TREES[2:5]
ABOVE_MAX_GRAM = (((1, 4), (0, 4)), ((2, 4), (0, 4)), ((1, 8), (0, 4)), ((3, 4), (0, 4)))
OF_THREE = ((1, 0, 4), (0, 2, 4), (0, 0, 4))  # of the middle model, the draft and Max-Gram
FEW = ("chain of 3", "tree of 8, depth 4", "staged tree of 8, depth 4", "cascade 1 4 / 0 4")


def latency_settings(ladder: Ladder, sampler: Sampler) -> list[Setting]:
    """Plain decoding, chains, trees, staged trees and cascades."""
    drafts = LadderDrafts(ladder, sampler)
    unmatched = LadderDrafts(ladder, sampler, matched=False)
    chains = {f"chain of {length}": drafts.chain(length) for length in CHAINS}
    for length in MIDDLE_CHAINS:
        chains[f"chain of {length}, middle"] = drafts.chain(length, model="middle")
    trees = {_tree_name(*size): drafts.tree(*size) for size in TREES}
    few = drafts.scout(4, 5)
    fed = {
        f"staged {_tree_name(*size)}": StagedTree(drafts.tree(*size), few, guided=1)
        for size in FED_TREES
    }
    fed["staged chain of 4"] = StagedTree(drafts.chain(4), drafts.scout(8, 5), guided=1)
    cascades = {
        f"cascade {format_matrix(one)}": drafts.cascade(("draft",), one) for one in ABOVE_MAX_GRAM
    }
    of_three = unmatched.cascade(("middle", "draft"), OF_THREE)
    cascades[f"cascade {format_matrix(OF_THREE)}"] = of_three
    methods: dict[str, Mapping[str, Draft]] = {
        AUTOREGRESSIVE: {AUTOREGRESSIVE: NoDraft()},
        "chain": chains,
        "tree": trees,
        "staged": fed,
        "cascade": cascades,
    }
    return [
        Setting(name, draft, sampler, method=method)
        for method, own in methods.items()
        for name, draft in own.items()
    ]


def few_settings(ladder: Ladder, sampler: Sampler) -> list[Setting]:
    """One setting of each method, for sweeps over temperatures and domains."""
    every = latency_settings(ladder, sampler)
    return [one for one in every if one.name in (AUTOREGRESSIVE, *FEW)]


def setting_in_words(name: str) -> str:
    """A setting's or method's name as figures write it: a cascade by what the target verifies, such
    as "cascade of 1 draft token and 4 copies" for "cascade 1 4 / 0 4"; the method without a draft
    as "plain decoding"; all others as they are.
    """
    if name == AUTOREGRESSIVE:
        return "plain decoding"
    method, _, matrix = name.partition(" ")
    if method != "cascade" or not matrix:
        return name
    *drafted, copied = map(int, matrix.split(" / ")[0].split())
    models = ("draft",) if len(drafted) == 1 else ("middle", "draft")
    told = [
        f"{count} {model} token{'s' if count > 1 else ''}"
        for model, count in zip(models, drafted, strict=True)
        if count
    ]
    return f"cascade of {', '.join(told)} and {copied} copies"


def _tree_name(budget: int, depth: int) -> str:
    return f"tree of {budget}, depth {depth}"
