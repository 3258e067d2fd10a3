"""Bugs that enumeration must see: rules and drafts that are wrong in one place."""

import itertools
from functools import partial

import pytest
import torch
from bugs import (
    Beside,
    Changed,
    ClaimsToDraw,
    PassesOver,
    Peeks,
    buggy_rule,
    first_rows_everywhere,
    likeliest_first,
    soft_rows,
    without_the_unlikely,
    without_twins,
)
from cases import Case, cascade, chain, flipping, models, staged_chain, switching, whole_deviation
from fakes import (
    PROMPT,
    T1,
    deviation,
    fixed_model,
    speculative_distribution,
    table_model,
)
from torch import Tensor

from specdec_lib.core.chance import Chance, EveryBranch, Sampler, every_outcome
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import reject
from specdec_lib.drafts.cascade import Reviewed, walks
from specdec_lib.drafts.cascade.reviewed import ReviewStep
from specdec_lib.drafts.staged import StagedChain
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

pytestmark = pytest.mark.usefixtures("unchecked")
P4, Q4 = (0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)
PAIR = fixed_model(P4), fixed_model(Q4, "draft")
KINDS = "iid", "distinct", "top"
IID, DISTINCT, TOP = (TreeDraft(PAIR[1], widths=(2,), siblings=kind) for kind in KINDS)
EVEN = fixed_model((0.25,) * 4, "other")
BESIDE = Beside(*(ChainDraft(model, 1, siblings="iid") for model in (PAIR[1], EVEN)))
SOFT = soft_rows(torch.tensor(Q4, dtype=torch.float64).log(), T1)
RULES = {
    "residual drawn from the whole distribution": {"residual": lambda wanted: wanted},
    "ratio 10 % too large": {"ratio": lambda kept: 1.1 * kept},
    "bonus drawn from the draft's distribution": {"bonus": lambda tree, wanted: tree.rows[1]},
    "temperature on one side only": {"warp": Sampler(0.8)},
    "top-k on one side only": {"warp": Sampler(1.0, top_k=2)},
}
DRAFTS = {
    "duplicates merged": Changed(IID, without_twins),
    "drawn guesses of two drafts merged": Changed(BESIDE, without_twins),
    "distribution not renormalised after a sibling": Changed(DISTINCT, first_rows_everywhere),
    "drawn tokens pruned": Changed(IID, without_the_unlikely),
    "siblings tried likeliest first": Changed(DISTINCT, likeliest_first(Q4)),
    "soft distribution for chosen siblings": Changed(TOP, SOFT),
}
BUGS = {name: (IID, buggy_rule(**change)) for name, change in RULES.items()}
BUGS |= {name: (draft, reject) for name, draft in DRAFTS.items()}


@pytest.mark.parametrize("draft,rule", BUGS.values(), ids=BUGS)
def test_enumeration_catches_the_bug(draft, rule):
    assert deviation(PAIR[0], draft, T1, rule, length=2) > 1e-3


@pytest.mark.parametrize(
    "draft, rule", [(BESIDE, reject), (IID, buggy_rule()), (DISTINCT, buggy_rule())]
)
def test_what_the_bugs_are_put_into_is_exact(draft, rule):
    """`MergedDraft` refuses the merging of drawn guesses, not such guesses side by side."""
    assert deviation(PAIR[0], draft, T1, rule, length=2) < 1e-12


P3, Q3 = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3)
LIKELIEST = (0.43775, 0.22535, 0.15794, 0.17897), (0.38929, 0.50357, 0.10714)
PUBLISHED = [  # siblings, change, the first token's distribution for P4 and Q4, for P3 and Q3
    ("iid", lambda _: without_twins, (0.37321, 0.32679, 0.2, 0.1), P3),
    ("distinct", lambda _: first_rows_everywhere, (0.35663, 0.34337, 0.2, 0.1), P3),
    ("distinct", likeliest_first, *LIKELIEST),
]


@pytest.mark.parametrize("siblings,change,four,three", PUBLISHED)
def test_wrong_variants_have_their_published_distributions(siblings, change, four, three):
    for wanted, offered, golden in ((P4, Q4, four), (P3, Q3, three)):
        drawn = TreeDraft(fixed_model(offered, "draft"), widths=(2,), siblings=siblings)
        draft = Changed(drawn, change(offered))
        pairs = speculative_distribution(fixed_model(wanted), draft, T1, length=2)
        found = [0.0] * len(golden)
        for (first, _), probability in pairs.items():
            found[first] += probability
        assert found == pytest.approx(golden, abs=5e-6)


def naive(wanted, token, row, lenience):
    """The naive reading of the paper: a lenient review hands up the reviewer's own distribution."""
    return wanted


@pytest.mark.parametrize("kind", ["vertical", "mixed", "three levels"])
def test_the_naive_lenient_row_is_caught_in_every_nesting(kind, monkeypatch):
    model = models(3, 2)
    target, draft = model("target"), cascade(kind, 5.0, "iid")(model)
    monkeypatch.setattr(walks, "lenient_probs", naive)
    assert deviation(target, draft, T1, length=2) > 1e-3


@pytest.mark.parametrize("bug", ["scout's distribution as row", "no correction"])
def test_a_wrong_inner_rule_is_caught(bug, monkeypatch):
    draft, scout = fixed_model((0.2, 0.5, 0.3), "draft"), fixed_model((0.6, 0.2, 0.2), "scout")
    if bug == "no correction":

        def accept_all(tree, *given, **options):
            return reject(tree, *given, **options | {"leniences": [1e9] * len(tree)})

        monkeypatch.setattr(walks, "reject", accept_all)
    else:
        real = Reviewed._walk
        row = T1.probs(scout.logits(()))

        def walk(*given):
            return [ReviewStep(node, [kept._replace(row=row)]) for node, [kept] in real(*given)]

        monkeypatch.setattr(Reviewed, "_walk", walk)
    guesser = StagedChain(draft, ChainDraft(scout, 1, siblings="iid"), 2, siblings="iid")
    assert deviation(fixed_model((0.5, 0.3, 0.2)), guesser, T1, length=2) > 1e-3


LEARNT = {
    "a choice claimed to be drawn": Case(lambda _: ClaimsToDraw(3, 2), length=2),
    "a choice by what was drawn": Case(lambda model: flipping(model, "iid", Peeks), 2, length=4),
    "passed over for what was drawn": Case(
        lambda model: switching(model, "iid", PassesOver), 2, length=4
    ),
}


@pytest.mark.parametrize("case", LEARNT.values(), ids=LEARNT)
def test_a_draft_that_learns_wrongly_is_caught(case):
    assert whole_deviation(case, T1)[0] > 1e-3


WITHOUT_PLACE = {  # what a nested part is keyed by, and a draft that must notice
    "nothing": (lambda self, part, slots=(): self, cascade("vertical", 1.0, "iid")),
    "its name alone": (
        lambda self, part, slots=(), real=Chance.inner: real(self, part),
        staged_chain(chain(1, "scout", siblings="iid"), 3),
    ),
}


@pytest.mark.parametrize("inner, make", WITHOUT_PLACE.values(), ids=WITHOUT_PLACE)
def test_nested_parts_that_share_their_keys_are_caught(inner, make, monkeypatch):
    """If two reviews of one place, or two inner rounds, shared a draw, it would decide twice."""
    monkeypatch.setattr(EveryBranch, "inner", inner)
    model = models(3)
    run = partial(decode, model("target"), make(model), PROMPT, max_new_tokens=4, rule=reject)
    with pytest.raises(ValueError, match="asked twice"):
        every_outcome(lambda chance: run(chance=chance).tokens, T1)


class NoiseByRow(Chance):
    """The bug of keying the noise by the call, not by the position."""

    calls = itertools.count()

    def choose(self, logits: Tensor, position: int) -> int:
        return super().choose(logits, next(self.calls))


def test_noise_keyed_by_the_call_is_caught():
    target, draft = table_model(4, 8), table_model(4, 9, name="draft")
    narrow, wide = ChainDraft(draft, 1), TreeDraft(draft, widths=(3, 2))
    plain, same, wrong = (
        decode(target, guesser, PROMPT, chance(0, T1), max_new_tokens=40).tokens
        for guesser, chance in ((narrow, Chance), (wide, Chance), (wide, NoiseByRow))
    )
    assert same == plain != wrong
