"""What proposes a tree: chains and trees, staged drafts, cascades, Max-Gram, n-grams, and drafts
made of several.
"""
