"""What scores a tree: models behind a path cache, encoder-decoder models, n-gram tables, and the
compiled CPU runtime.
"""
