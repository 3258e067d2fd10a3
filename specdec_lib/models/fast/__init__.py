"""The same model, faster: one compiled CPU path, and the measurement that chooses it."""
