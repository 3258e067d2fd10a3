"""Measure on the embedded prompts, into data/measured, or on prompts of your own."""
