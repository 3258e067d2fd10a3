"""`specdec setup`: prepares the default target model; a second call returns at once."""

import argparse

from specdec_lib.suite.setup.target import prepare_target


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    description = __doc__.partition(": ")[2]
    argparse.ArgumentParser(prog="specdec setup", description=description).parse_args(arguments)
    print(f"the target is in {prepare_target()}")
