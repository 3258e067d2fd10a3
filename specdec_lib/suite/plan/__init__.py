"""Which draft, at which setting, is fastest for a pair of models on this machine and these prompts,
and whether it pays at all.
"""
