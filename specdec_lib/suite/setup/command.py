"""`specdec setup`: prepares the SmolLM2 target model; a second call returns at once."""

from collections.abc import Sequence

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.setup.target import prepare_target


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; raises ValueError if the target cannot be prepared."""
    Parser("setup", __doc__.partition(": ")[2]).parse_args(arguments)
    print(f"the target is in {prepare_target()}")
