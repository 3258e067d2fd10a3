"""Cascades tuned, measured and timed: the tables behind notebook 04."""
