"""Prompt sets and match tables: what is loaded, and what is refused."""

from dataclasses import replace

import pytest

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.workload import DOMAINS, SPLITS, Measured, load_prompts, seeds


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_prompt_sets_are_whole_and_split_by_file(domain):
    sets = [load_prompts(domain, split) for split in SPLITS]
    assert [len(prompts) for prompts in sets] == [60, 60]
    everything = load_prompts(domain, "all")
    assert len({prompt.name for prompt in everything}) == 120
    assert len({prompt.text for prompt in everything}) == 120
    assert {prompt.domain for prompt in everything} == {domain}
    if domain in ("code", "summary"):
        development, held_out = ({prompt.origin for prompt in prompts} for prompts in sets)
        assert development.isdisjoint(held_out)


def test_seeds_follow_from_the_prompts_name():
    prompts = load_prompts("code")
    found = seeds(prompts, 0)
    assert len(set(found)) == len(prompts) and seeds(prompts[3:5], 0) == found[3:5]
    assert seeds(prompts, 1) != found


@pytest.fixture
def measured(ladder):
    """The ladder with tables that differ in their first rate alone."""

    def entry(rate, temperature, top_k=None, siblings="ranked"):
        sampler, table = Sampler(temperature, top_k=top_k), MatchTable((rate,), str(rate))
        return Measured("draft", "target", siblings, sampler, 9, table)

    warm = (entry(0.2, 1.0), entry(0.3, 1.0, 50), entry(0.5, 1.0, siblings="iid"))
    return replace(ladder, measured=(entry(0.1, 0.4), *warm, entry(0.4, 1.3)))


@pytest.mark.parametrize(
    "sampler,rate",
    [
        *((Sampler(0), 0.1), (Sampler(0.9), 0.2), (Sampler(1.0), 0.2), (Sampler(1.3), 0.4)),
        *((Sampler(temperature, top_k=50), rate) for temperature, rate in ((0.9, 0.3), (1.0, 0.3))),
        *((Sampler(5.0, top_k=50), 0.4), (Sampler(1.0, top_k=7), 0.2)),
        (Sampler(1.0, top_p=0.9), 0.2),
    ],
)
def test_the_match_table_is_of_the_sampler_or_nearest_temperature(measured, sampler, rate):
    assert measured.match("draft", sampler).rates == (rate,)


def test_the_match_table_is_that_of_the_models_and_siblings(measured):
    assert measured.match("draft", Sampler(1.3), siblings="iid").rates == (0.5,)
    middle, known = {"obeyed": "middle"}, r"there are: draft for target, iid; draft for .*, ranked$"
    for guesser, unknown in (("middle", {}), ("draft", middle), ("draft", {"siblings": "top"})):
        with pytest.raises(ValueError, match=known):
            measured.match(guesser, Sampler(1.0), **unknown)
    assert replace(measured, measured=()).match("draft", Sampler(1.0)) == MatchTable()


def test_a_stored_table_comes_back_under_a_name_that_says_its_sampler():
    stored = {"guesser": "n-gram", "obeyed": "draft", "siblings": "ranked", "contexts": 5}
    stored |= {"temperature": 0.7, "top_k": None, "rates": [0.5, 0.1], "edges": [1.0]}
    one = Measured.of(stored | {"binned": [[0.3, 0.2], [0.9, 0.0]]})
    binned = ((0.3, 0.2), (0.9, 0.0))
    assert one.table == MatchTable((0.5, 0.1), "measured at T=0.7", (1.0,), binned)
    assert one.sampler == Sampler(0.7)
    with pytest.raises(ValueError, match="one bin more than edges"):
        Measured.of(stored | {"edges": [1.0, 2.0], "binned": [[0.3], [0.9]]})
