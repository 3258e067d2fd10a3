"""Measurements on the workers of a Dask client: the same rows, whoever counted them."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security
from own_models import gpt2, llama
from sweeps import assert_same

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure import cluster as cluster_module
from specdec_lib.measure import fingerprints
from specdec_lib.measure.cluster import Cluster, LadderRecipe, connect, spread_rows
from specdec_lib.measure.latency.predict import fit_overheads
from specdec_lib.measure.planning import try_settings
from specdec_lib.measure.replaying import sweep
from specdec_lib.measure.row_cache import RowCache
from specdec_lib.measure.settings.setting import GREEDY, Setting
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.suite.command import main
from specdec_lib.suite.distil import lessons, parts
from specdec_lib.suite.distil.passages import write_pieces
from specdec_lib.suite.distil.shards import Conversation, read_text
from specdec_lib.workload import Ladder, load_prompts
from tests.test_distil import HEAD, network, texts

pytestmark = pytest.mark.usefixtures("unchecked")
LENGTH = {"max_new_tokens": 8, "seed": 3, "progress": False}
ITEMS = [(str(number), number) for number in range(12)]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> LadderRecipe:
    folder = tmp_path_factory.mktemp("pair")
    draft = str(gpt2(folder / "draft", seed=2))
    return LadderRecipe(str(llama(folder / "target")), draft, runtime="reference")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as local, Client(local, set_as_default=False) as found:
        yield found


@pytest.fixture(scope="module")
def workers(client, recipe) -> Cluster:
    return Cluster(client, recipe)


@pytest.fixture(scope="module")
def ladder(recipe) -> Ladder:
    return recipe.load()


def squares(ladder: Ladder, number: int, *, marker: str = "", wrong: int = -1) -> list[dict]:
    """A row per number; with a marker, the first process that comes to 5 is killed."""
    if marker and number == 5 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == wrong:
        raise ValueError(f"{number} cannot be measured")
    time.sleep(0.02)
    return [{"square": number**2, "vocabulary": ladder.target.vocabulary, "pid": os.getpid()}]


def test_a_sweep_has_the_same_rows_on_workers_and_reads_the_kept_ones(ladder, workers, tmp_path):
    """In the order of the prompts, with drafts of several kinds; control: another seed."""
    tree = TreeDraft(ladder.draft, budget=4, depth=3)
    settings = [
        Setting("chain", ChainDraft(ladder.draft, 2)),
        Setting("tree", tree, Sampler(1.0, top_k=20)),
        Setting("copies", ladder.max_gram),
    ]
    prompts = load_prompts("chat", "development", 5)
    here = sweep(settings, prompts, ladder, **LENGTH)
    there = sweep(settings, prompts, ladder, **LENGTH, cluster=workers, keep=tmp_path)
    assert_same(here, there)
    again = sweep(settings, prompts, ladder, **LENGTH, keep=tmp_path)
    assert again.seconds.tolist() == there.seconds.tolist()
    other = sweep(settings, prompts, ladder, **LENGTH | {"seed": 4}, cluster=workers)
    assert not other.equals(there)


def test_what_is_asked_twice_is_measured_once_and_has_its_rows_twice(ladder):
    rows = spread_rows(squares, [*ITEMS[:3], ITEMS[1]], ladder, {}, RowCache(None))
    assert [row["square"] for row in rows] == [0, 1, 4, 1]


def die(ladder: Ladder, number: int) -> list[dict]:
    """Kill every process that comes here."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_prompt_that_kills_every_worker_ends_in_a_line(ladder, recipe):
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(**options) as local,
        Client(local, set_as_default=False) as client,
        pytest.raises(ValueError, match=r"every worker that measured a died: tcp.* last"),
    ):
        cluster = Cluster(client, recipe)
        spread_rows(die, [("a", 1)], ladder, {}, RowCache(None), cluster=cluster)


def test_what_a_killed_worker_had_is_measured_by_another(ladder, workers, tmp_path):
    marker = tmp_path / "killed"
    arguments = {"marker": str(marker)}
    rows = spread_rows(
        squares, ITEMS, ladder, arguments, RowCache(tmp_path / "rows"), cluster=workers
    )
    assert [row["square"] for row in rows] == [number**2 for number in range(12)]
    assert marker.exists() and os.getpid() not in {row["pid"] for row in rows}
    assert len([*(tmp_path / "rows").iterdir()]) == 12


def test_what_is_raised_there_is_raised_here_and_what_was_finished_is_kept(
    ladder, workers, tmp_path
):
    cache = RowCache(tmp_path)
    with pytest.raises(ValueError, match="11 cannot be measured"):
        spread_rows(squares, ITEMS, ladder, {"wrong": 11}, cache, cluster=workers)
    kept = [number for number in range(12) if cache.read(str(number))]
    assert kept and 11 not in kept
    rows = spread_rows(squares, ITEMS, ladder, {}, cache)
    assert [row["square"] for row in rows] == [number**2 for number in range(12)]
    assert {rows[number]["pid"] for number in kept}.isdisjoint({os.getpid()})


def pretend(code: str | None) -> None:
    """Run on a worker: it has other code from now on; with None, its own again."""
    cluster_module._loaded.cache_clear()
    other = {} if code is None else {"code": code}
    cluster_module.identity = lambda *things: fingerprints.identity(*things) | other


def test_a_worker_with_other_code_is_refused_and_the_others_do_its_work(ladder, client, workers):
    client.wait_for_workers(2)  # one may have been killed before
    known = [*client.scheduler_info(n_workers=-1)["workers"]]
    client.run(pretend, "other", workers=known[:1])
    with pytest.warns(UserWarning, match=rf"{known[0]} is refused: it has other code than this"):
        rows = spread_rows(squares, ITEMS, ladder, {}, RowCache(None), cluster=workers)
    assert [row["square"] for row in rows] == [number**2 for number in range(12)]
    [pid] = {row["pid"] for row in rows}
    assert pid == client.run(os.getpid)[known[1]]
    client.run(pretend, "other", workers=known[1:])
    with (
        pytest.warns(UserWarning, match="is refused"),
        pytest.raises(ValueError, match=r"no worker is like this client: .* has other code"),
    ):
        spread_rows(squares, ITEMS, ladder, {}, RowCache(None), cluster=workers)
    client.run(pretend, None)


def test_a_plan_counts_on_workers_what_it_counts_here(ladder, workers):
    prompts = load_prompts("chat", "development", 4)
    texts = write_texts(ladder, prompts, GREEDY, max_new_tokens=8)
    tried = {
        ("autoregressive", "token by token"): NoDraft(),
        ("tree", "of 4"): TreeDraft(ladder.draft, budget=4, depth=2),
    }
    here = try_settings(ladder, prompts, texts, tried)
    there = try_settings(ladder, prompts, texts, tried, cluster=workers)
    columns = ["method", "setting", "prompt", "situation", "work"]
    assert here[columns].equals(there[columns])
    timed = there.outside.notna()
    assert set(there.prompt[timed]) == {one.name for one in prompts[:2]}  # this machine's alone
    assert here.outside.notna().all() and fit_overheads(there).keys() == fit_overheads(here).keys()


def own_target() -> None:
    """Run on a worker: a tiny target teaches."""
    lessons.load_target = network
    lessons._own_teacher.cache_clear()


def test_lessons_of_workers_are_those_of_this_machine(client, workers, tmp_path):
    client.run(own_target)
    lessons.teach(texts(), HEAD, tmp_path / "here", target=network())
    lessons.teach(texts(), HEAD, tmp_path / "there", workers)
    here, there = (sorted((tmp_path / name).iterdir()) for name in ("here", "there"))
    assert [one.read_bytes() for one in here] == [one.read_bytes() for one in there] and here


def short_parts() -> None:
    """Run on a worker: a part has 20 answer tokens, and a conversation tells its part's seed."""
    parts.PART = 20

    def fresh(how: object, pieces: object, seed: int) -> Iterator[Conversation]:
        for number in range(100):
            yield Conversation((seed, number, *range(10)), ((2, 12),), True, True, "chat")

    parts._fresh = fresh


def test_workers_write_parts_until_there_are_enough_answer_tokens(
    client, workers, tmp_path, monkeypatch
):
    client.run(short_parts)
    monkeypatch.setattr(parts, "PART", 20)
    pieces = tmp_path / "pieces.jsonl.gz"
    write_pieces(pieces, [])
    options = {"answer_tokens": 90, "cluster": workers}
    assert parts.write_conversations(tmp_path / "text", pieces, "short", **options) == 90
    found = [one.ids[:2] for one in read_text(tmp_path / "text")]
    assert found == [(1000 + part, number) for part in range(5) for number in range(2)][:9]
    with pytest.raises(ValueError, match="of a worker is not the file of this machine"):
        parts.conversation_rows(None, 1, how=None, passages=pieces, digest="other")


def test_other_weights_are_refused(client, ladder, workers, tmp_path):
    other = replace(workers.recipe, target=str(llama(tmp_path / "target", seed=5)))
    with (
        pytest.warns(UserWarning, match="other weights than this client"),
        pytest.raises(ValueError, match="has other weights"),
    ):
        spread_rows(squares, ITEMS, ladder, {}, RowCache(None), cluster=Cluster(client, other))


@pytest.mark.parametrize("address", ["tcp://10.1.2.3:8786", "example.org:8786", "ucx://127.0.0.1"])
def test_a_scheduler_elsewhere_without_certificates_is_refused(address):
    with pytest.raises(ValueError, match=r"has certificates \(tls://HOST:PORT\).*got " + address):
        connect(address)


@pytest.mark.parametrize(
    "verb, why",
    [
        (
            "measure latency",
            "it times what it runs, and seconds of other machines are no comparison",
        ),
        ("bench", "it times what it runs, and seconds of other machines are no comparison"),
        ("compare", "it times what it runs, and seconds of other machines are no comparison"),
        ("measure walltime", "it times what it runs"),
        ("measure growth", "it runs on this machine alone"),
    ],
)
def test_what_is_timed_or_runs_here_alone_takes_no_scheduler(verb, why, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main([*verb.split(), "--scheduler", "127.0.0.1:8786"])
    assert f"specdec {verb}: it takes no --scheduler: {why}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb", ["table", "staged", "acceptance", "verifiers", "editions", "cascades", "regret"]
)
def test_what_counts_takes_a_scheduler_and_refuses_one_elsewhere_at_once(verb, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["measure", verb, "--scheduler", "10.1.2.3:8786"])
    said = capsys.readouterr().err
    assert "a scheduler is on this machine" in said and len(said.splitlines()) == 1


def test_a_scheduler_that_is_not_there_is_said_to_be_silent_in_time(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"no scheduler answers at 127\.0\.0\.1:9"):
        connect("127.0.0.1:9")
    assert time.monotonic() - started < 9


def certificate(folder: Path, name: str) -> dict[str, str]:
    """A key and a certificate that signs itself, as Dask's configuration names them."""
    folder.mkdir()
    key, found = folder / "key.pem", folder / "certificate.pem"
    line = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name}"
    line += f" -keyout {key} -out {found}"
    subprocess.run(line.split(), check=True, capture_output=True)
    return {"tls_ca_file": str(found), "cert": str(found), "key": str(key)}


def security(files: dict[str, str]) -> Security:
    roles = {f"tls_{role}_{part}": files[part] for role in ROLES for part in ("cert", "key")}
    return Security(require_encryption=True, tls_ca_file=files["tls_ca_file"], **roles)


ROLES = ("scheduler", "worker", "client")


def configured(files: dict[str, str]) -> dask.config.set:
    tls = "distributed.comm.tls"
    client = {f"{tls}.client.{part}": files[part] for part in ("cert", "key")}
    return dask.config.set({f"{tls}.ca-file": files["tls_ca_file"], **client})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_a_strangers_certificate_is_refused(ladder, recipe, tmp_path, monkeypatch):
    """Control: our own is not, and counts."""
    ours, theirs = (certificate(tmp_path / name, name) for name in ("ours", "theirs"))
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, protocol="tls://", security=security(ours)) as local:
        address = local.scheduler_address
        with configured(ours), connect(address) as client:
            found = Cluster(client, recipe)
            rows = spread_rows(squares, [("3", 3)], ladder, {}, RowCache(None), cluster=found)
            assert rows[0]["square"] == 9
        monkeypatch.setattr(cluster_module, "PATIENCE", 2)
        with configured(theirs), pytest.raises(ValueError, match=f"no .* answers at {address}"):
            connect(address)
