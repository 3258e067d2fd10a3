"""Sweeps: every prompt under every setting, one row of counts for each generation."""
