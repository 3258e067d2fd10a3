"""Results in the form of Spec-Bench: read, scored by sums, paired with a baseline, compared word for word, and written.

Where we differ from the published scripts, and why: rates are sums ÷ sums, because a mean of rates weighs a short answer like a long one; both
files' own counts of new tokens are used, where the published script counts the method's tokens and re-tokenises the baseline's text; questions
are paired by their number and not by their place; failed answers are left out and named; texts are compared turn by turn, and one that only goes
on longer is told apart from one that differs.
Source: Xia et al. 2024, and the repository hemingkx/Spec-Bench, evaluation/eval.py, speed.py and equal.py.
"""

from specdec_lib.specbench.answers import Answer, Choice, read
from specdec_lib.specbench.scoring import GROUPS, common, convention, score
from specdec_lib.specbench.texts import Difference, differences
from specdec_lib.specbench.writing import answers, write

__all__ = ["GROUPS", "Answer", "Choice", "Difference", "answers", "common", "convention", "differences", "read", "score", "write"]
