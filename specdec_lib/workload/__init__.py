"""What it runs on: prompts, and a ladder of models from largest to smallest; device and dtype are decided here, once."""

from specdec_lib.places import DATA, REMEDY, checked_card, file_digest
from specdec_lib.workload.ladder import MATCH, Ladder, Measured, neutral
from specdec_lib.workload.loading import load_ladder
from specdec_lib.workload.models import DTYPES, RUNTIMES, calibrated, faster, load_model, load_seq2seq
from specdec_lib.workload.pair import Pair, load_pair
from specdec_lib.workload.prompts import DOCSTRING, DOMAINS, PUBLISHED, SPLITS, WHOLE, Prompt, load_prompts, seeds
from specdec_lib.workload.tokens import check_tokenizers, load_tokenizer

__all__ = [
    "DATA",
    "DOCSTRING",
    "DOMAINS",
    "DTYPES",
    "MATCH",
    "PUBLISHED",
    "REMEDY",
    "RUNTIMES",
    "SPLITS",
    "WHOLE",
    "Ladder",
    "Measured",
    "Pair",
    "Prompt",
    "calibrated",
    "check_tokenizers",
    "checked_card",
    "faster",
    "file_digest",
    "load_ladder",
    "load_model",
    "load_pair",
    "load_prompts",
    "load_seq2seq",
    "load_tokenizer",
    "neutral",
    "seeds",
]
