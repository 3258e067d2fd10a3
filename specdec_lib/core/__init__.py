"""The core: contexts, trees, chance, the rules that verify, the decoding loop, and stored files."""
