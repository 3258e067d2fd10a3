"""The core: contexts, trees, chance, the two rules, the decoding loop, and stored files."""
