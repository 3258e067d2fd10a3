"""Sweeps: every prompt under every setting, one row of counts and seconds for each generation."""
