"""`specdec measure texts`: what the target writes after every stored prompt, once per sampler, into
data/measured/texts: tables and notebooks count every method along these texts.
"""

from collections.abc import Sequence

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.measure.texts import SAMPLERS, Texts, every_domain, text_file
from specdec_lib.workload import WHOLE, load_ladder


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a sampler's file that is there is not written again."""
    places = [text_file(one) for one in SAMPLERS]
    parser = Parser("measure texts", __doc__.partition(": ")[2], writes=places)
    parser.add_common("--max-new-tokens", 256)
    given = parser.parse_args(arguments)
    missing = [sampler for sampler in SAMPLERS if not text_file(sampler).is_file()]
    if not missing:
        print(f"all texts are in {text_file(SAMPLERS[0]).parent}; delete a file to write it anew")
        return
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    limit, prompts = {"max_new_tokens": given.max_new_tokens}, every_domain(WHOLE)
    for sampler in missing:
        Texts.written(ladder, prompts, sampler, **limit).save(text_file(sampler))
