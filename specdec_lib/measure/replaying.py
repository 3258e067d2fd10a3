"""Every prompt under every setting: the generations, counted along the target's texts where these
are known, and a table with a row for each.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.kinds import checked
from specdec_lib.core.verify import look_up
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.recorded_target import RecordedTarget, replay_draft
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.settings.exported import export_setting, import_setting
from specdec_lib.measure.settings.setting import Setting, check_settings
from specdec_lib.measure.target_text import TargetText, find_text
from specdec_lib.measure.trial import Trial, sweep_table, trial_of
from specdec_lib.workload import Ladder, Pair, Prompt, seeds


@checked
def generations(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[TargetText] = (),
    progress: bool = True,
) -> Iterator[tuple[Setting, Prompt, Generation]]:
    """Every prompt decoded under every setting; noise follows from the prompt's name and the seed.

    texts    what the target writes after these prompts: settings under `look_up` with a sampler
             that has texts are replayed along them, which gives the same rounds without a pass of
             the target
    """
    check_settings(settings)
    check_texts(texts, seed, max_new_tokens)
    known = {one.sampler for one in texts}
    total = len(settings) * len(prompts)
    with tqdm(total=total, desc="sweep", disable=not progress, mininterval=1) as bar:
        for prompt, own in zip(prompts, seeds(prompts, seed), strict=True):
            tokens = ladder.encode(prompt)
            for setting in settings:
                chance = Chance(own, setting.sampler)
                if setting.rule is look_up and setting.sampler in known:
                    written = find_text(texts, prompt, setting.sampler).tokens
                    recorded = RecordedTarget.of(ladder.target, tokens, written, max_new_tokens)
                    made = replay_draft(
                        recorded, setting.draft, chance, stop_tokens=ladder.stop_tokens
                    )
                else:
                    made = decode(
                        ladder.target,
                        setting.draft,
                        tokens,
                        chance,
                        rule=setting.rule,
                        max_new_tokens=max_new_tokens,
                        stop_tokens=ladder.stop_tokens,
                    )
                yield setting, prompt, made
                bar.update()


def check_texts(texts: Sequence[TargetText], seed: int, max_new_tokens: int) -> None:
    """Raise ValueError unless texts have this seed and may be so long."""
    for one in texts:
        if one.seed != seed or one.limit < max_new_tokens:
            raise ValueError(
                f"texts of seed {one.seed} and up to {one.limit} tokens"
                f" cannot be replayed with seed {seed} and {max_new_tokens} tokens"
            )


@checked
def sweep(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[TargetText] = (),
    progress: bool = True,
    keep: str | Path | None = None,
    cluster: Cluster | None = None,
) -> pd.DataFrame:
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    texts    see `generations`
    keep     a folder where the rows of each finished prompt are kept, for sweeps of the same
             settings, models, seed, length, texts and code; a damaged file is decoded again
    cluster  the workers of a Dask client, each of which loads the models; settings travel as
             `export_setting` writes them

    The columns are: draft, temperature, top_k, top_p, rule, prompt; tokens, rounds, proposed,
    accepted, tried, repetition; stop, why the generation ended ("stop token", "length" or
    "context"); per model its passes, its rows, and the length up to the round's root summed over
    its passes; seconds of all rounds, of reading the prompt before them, of the rounds outside the
    models, and per model within them. Seconds along a text are without the target's. All columns
    but those of seconds are the same whether the sweep was interrupted or not.
    """
    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    check_settings(settings)
    options = {"seed": seed, "max_new_tokens": max_new_tokens}
    check_texts(texts, seed, max_new_tokens)
    same = (settings, ladder, options, texts)
    folder = Path(keep) / fingerprint(*same) if keep else None
    items = [
        (key_of(prompt), (prompt, [text for text in texts if text.is_of(prompt)]))
        for prompt in prompts
    ]
    along = {text.sampler for text in texts}
    for sampler in {one.sampler for one in settings if one.rule is look_up} & along:
        for prompt in prompts:
            find_text(texts, prompt, sampler)  # one that lacks is refused at once
    sent = settings if cluster is None else [export_setting(one) for one in settings]
    rows = spread_rows(
        swept_rows,
        items,
        ladder,
        {"settings": sent, **options},
        RowCache(folder),
        cluster=cluster,
        label="sweep",
        progress=progress,
    )
    return sweep_table(map(Trial.from_row, rows))


def swept_rows(
    ladder: Ladder | Pair,
    item: tuple[Prompt, Sequence[TargetText]],
    *,
    settings: Sequence[Setting | str],
    seed: int,
    max_new_tokens: int,
) -> list[Row]:
    """The trials of every setting, itself or exported, on one prompt with its texts."""
    prompt, texts = item
    here = [import_setting(one, ladder) if isinstance(one, str) else one for one in settings]
    options = {"seed": seed, "max_new_tokens": max_new_tokens, "texts": texts, "progress": False}
    made = generations(here, [prompt], ladder, **options)
    return [trial_of(one, prompt, done, ladder.target.name).row() for one, _, done in made]
