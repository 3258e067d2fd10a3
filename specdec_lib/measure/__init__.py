"""Records, counts and seconds: sweeps, acceptance, replay, latency, races, near-ties, intervals."""
