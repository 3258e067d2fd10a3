"""Prepares the SmolLM2 target model, SmolLM2-135M-Instruct, from a package that ships it."""

from specdec_lib.suite.setup.target import load_target, prepare_target

__all__ = ["load_target", "prepare_target"]
