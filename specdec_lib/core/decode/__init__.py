"""The loop, and an honest record of each round."""

from specdec_lib.core.decode.asking import models_in, parts_of
from specdec_lib.core.decode.loop import decode, read_prompt, rounds
from specdec_lib.core.decode.records import Generation, Round

__all__ = ["Generation", "Round", "decode", "models_in", "parts_of", "read_prompt", "rounds"]
