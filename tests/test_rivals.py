"""The race against Hugging Face's ways: who runs, what goes on, what is compared."""

import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.measure import rivals
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.ratios import interval
from specdec_lib.measure.rival_tables import compare_rivals, rivals_page, side_by_side
from specdec_lib.measure.settings.names import HF, STATIC_CACHE
from specdec_lib.measure.target_text import chosen_prompts

BUSY = Quiet(busy=True)


def test_every_way_runs_once_per_sampler_and_a_table_goes_on(tmp_path, monkeypatch, unchecked):
    ladder = tiny_ladder()
    monkeypatch.setattr(rivals, "racing_ladder", lambda _: ladder)
    monkeypatch.setattr(rivals, "load_ladder", lambda **_: ladder)
    monkeypatch.setattr(rivals, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(rivals, "TUNING", 4)
    place = tmp_path / "rivals.csv"
    prompts = chosen_prompts("chat", "held-out", 2)
    first = rivals.race_rivals(place, prompts[:1], BUSY, tokens=6)
    assert list(first.columns) == rivals.COLUMNS and len(first) == 2 * 5
    for _, own in first.groupby("temperature"):
        assert set(own.method) == {"autoregressive", *HF}
        assert (own.setting == STATIC_CACHE).sum() == 1
    first.to_csv(place, index=False)
    monkeypatch.setattr(rivals, "_tuned", lambda *_: pytest.fail("tuned again"))
    both = rivals.race_rivals(place, prompts, BUSY, tokens=6)
    assert len(both) == 2 * len(first)
    again = both[both.prompt == prompts[0].name].seconds.tolist()
    assert again == pytest.approx(first.seconds.tolist())
    other = pd.read_csv(place).assign(state="another")
    other.to_csv(place, index=False)
    monkeypatch.setattr(rivals, "cache_folder", lambda: tmp_path / "empty")
    with pytest.raises(BaseException, match="tuned again"):  # rows of other code do not count
        rivals.race_rivals(place, prompts[:1], BUSY, tokens=6)


def timed(method: str, seconds: float, **about: object) -> list[dict[str, object]]:
    setting = STATIC_CACHE if about.pop("static", False) else "token by token"
    where = {"temperature": 0.0, "top_k": 0, "family": "embedded prompts", "runtime": "r"}
    own = where | {"method": method, "setting": setting, "tokens": 10, "timed_tokens": 10} | about
    return [own | {"prompt": f"{at}", "seconds": seconds * (1 + at / 10)} for at in range(10)]


def test_theirs_and_ours_have_one_unit():
    """Times plain decoding in float32 of the same prompts: int8 is held against that too."""
    raced = pd.DataFrame(
        timed("autoregressive", 1.0) + timed("hf_generate", 2.0, static=True, runtime="HF")
    )
    found = compare_rivals(raced).set_index("method")
    assert found.ratio["hf_generate"] == pytest.approx(0.5)
    assert found.ms_per_token["autoregressive"] == pytest.approx(145)
    ideas = pd.DataFrame(
        timed("autoregressive", 1.0, edition="exact")
        + timed("autoregressive", 0.25, edition="int8")
        + timed("tree", 0.5, edition="exact")
    )
    ideas = pd.concat([ideas, ideas[ideas.method == "tree"].assign(edition="int8", seconds=0.1)])
    with_all = [ideas]
    for method in ("speculative decoding", "tree, copies", "vertical cascade"):
        with_all += [ideas[ideas.method == "tree"].assign(method=method)]
    table = side_by_side(pd.concat(with_all), raced).set_index(["name", "whose"])
    assert table.ratio["transformers generate, static cache", "HF"] == pytest.approx(0.5)
    assert table.ratio["plain decoding", "int8"] == pytest.approx(4.0)
    assert table.ratio["tree", "float32"] == pytest.approx(2.0)
    page = rivals_page(table.reset_index())
    assert "| plain decoding | int8 | 4.00 (4.00–4.00) | – |" in page
    sides = ([10.0] * 10, [0.1] * 10, [10.0] * 10, [1 + at / 10 for at in range(10)])
    assert table.ratio_low["tree", "int8"] == pytest.approx(interval(*sides)[1])
