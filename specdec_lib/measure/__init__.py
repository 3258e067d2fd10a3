"""Records, counts and seconds: sweeps, acceptance rates, replay, latency, races, near-ties, and one
way to an interval.
"""
