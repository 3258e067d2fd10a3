"""Sweeps: every prompt under every setting, one row of counts and seconds for each generation.

Import from the modules themselves: `grid.Setting`, `running.sweep`, `ratios.summarise`. This file
imports none of them, so that the code that kept rows depend on (`identity`) stays small.
"""
