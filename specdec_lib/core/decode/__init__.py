"""The loop that decodes with a draft, and a record of each of its rounds."""

from specdec_lib.core.decode.loop import Generation, Round, decode, read_prompt, rounds
from specdec_lib.core.decode.parts import models_in, parts_of, refuse_learners, vocabularies_in
