"""A setting: a draft under a name, with a sampler and a rule. Every selection is a list of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import refuse_learners
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, Rule
from specdec_lib.core.verify import look_up

GREEDY = Sampler(0)
WARM = Sampler(1.0)
TOP_50 = Sampler(1.0, top_k=50)  # the staged paper's


@checked
@dataclass(frozen=True)
class Setting:
    """One point of the grid: a draft under a name, a sampler and a rule.

    method    the kind of draft, where settings are compared by kind; a label, which no comparison
              of settings heeds and no exported setting has
    """

    name: str
    draft: Draft
    sampler: Sampler = Sampler()
    rule: Rule = look_up
    method: str = field(default="", compare=False)

    @property
    def rule_name(self) -> str:
        """The name of the rule's function, as tables and exported settings have it."""
        return rule_name(self.rule)


def rule_name(rule: Rule) -> str:
    """The name of a rule's function."""
    return rule.__name__  # pyright: ignore[reportAttributeAccessIssue]  # rules are functions


def check_settings(settings: Sequence[Setting]) -> None:
    """Raises ValueError if there is none, two share name, sampler and rule, or a draft learns."""
    keys = [(setting.name, setting.sampler, setting.rule) for setting in settings]
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(
            "a sweep needs settings with different names, samplers or rules,"
            f" got {[key[0] for key in keys]}"
        )
    refuse_learners("a sweep", *(setting.draft for setting in settings))
