"""Prepares the default target, SmolLM2-135M-Instruct, from a package that ships its weights."""

from specdec_lib.suite.setup.target import prepare_target

__all__ = ["prepare_target"]
