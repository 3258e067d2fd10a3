"""Drafts, which propose trees of guesses: chains and trees, staged drafts, cascades, Max-Gram,
n-grams, and drafts made of several.
"""
