"""Runs the notebooks through papermill: `specdec reproduce`.

A run is known by the fingerprint of everything it depends on, and done once; executed notebooks and
a manifest per run lie in `runs/` beside the figures.
"""
