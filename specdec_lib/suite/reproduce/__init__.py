"""Runs the notebooks through papermill: `specdec reproduce`.

A run is a notebook, its parameters and everything it depends on; it is done once and then known by
its fingerprint. Executed notebooks and one manifest per run lie in `runs/` beside the figures; the
notebooks themselves change only under `--refresh`.
"""
