"""`specdec measure texts`."""

from specdec_lib.core.files import cache_folder, check_output
from specdec_lib.measure.options import DomainLimit, OwnPrompts, Scheduler, use_threads


def texts(
    *, prompts: OwnPrompts = None, limit: DomainLimit = 60, scheduler: Scheduler = None
) -> None:
    """Let the target write after every embedded prompt, once per sampler, into data/measured/texts.

    A sampler's file that is there is not written again, and an interrupted run goes on with the
    texts that were not finished. Texts after --prompts are kept in the cache, where other
    measurements of these prompts find them.
    """
    from specdec_lib.measure.cluster import LadderRecipe, opened
    from specdec_lib.measure.target_text import SAMPLERS, judged_prompts, text_file
    from specdec_lib.measure.text_writing import texts_after, write_stored_texts

    use_threads(1)
    if prompts is None:
        if scheduler is not None:
            raise ValueError("--scheduler goes with --prompts: stored texts are written together")
        for one in SAMPLERS:
            check_output(text_file(one))
        write_stored_texts(LadderRecipe(runtime="reference").load(), cache_folder() / "texts")
        return
    asked = judged_prompts(prompts, limit)
    recipe = LadderRecipe()
    with opened(scheduler, recipe) as cluster:
        found = texts_after(asked, SAMPLERS, recipe.load(), cluster=cluster)
    print(f"{len(found)} texts after {len(asked)} prompts are in {cache_folder() / 'texts'}")
