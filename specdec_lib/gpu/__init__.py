"""Measurements that need a GPU: exactness, latency curves, the ledger of a round, and a large target trained on the spot against every baseline.

Each is a command, `python -m specdec_lib.gpu.<name>`, that goes on where it was stopped, writes into data/measured and prints a short table; `--tiny`
tries it out on any machine. None of them needs more than torch, transformers, tokenizers, safetensors, NumPy, jaxtyping and tqdm.
"""
