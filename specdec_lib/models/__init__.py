"""What scores a tree: networks behind a path cache, n-gram tables, and the compiled runtime."""
