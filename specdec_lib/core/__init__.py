"""The loop and all that makes it safe: values and pure functions, no network."""
