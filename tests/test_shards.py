"""Shards come back as they were, whatever was killed, is gone, or has large ids."""

import torch

from specdec_lib.core.files import tensor_file
from specdec_lib.suite.distil import shards
from specdec_lib.suite.distil.shards import Conversation
from tests.test_distil import texts


def test_shards_come_back_and_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    talk = Conversation((1, 65_536, 3, 4, 5), ((1, 2), (3, 5)), True, False, "dialogue")
    conversations = [talk, *texts(2)]
    monkeypatch.setattr(shards, "SHARD_ANSWER_TOKENS", 7)
    monkeypatch.setattr(shards, "WRITE_SECONDS", -1)
    for number, _ in enumerate(shards.stored(tmp_path, conversations)):
        assert shards.read_text(tmp_path) == conversations[: number + 1]  # nothing waits
    killed = shards.stored(tmp_path, conversations)
    next(killed)
    killed.close()
    paths = shards.list_shards(tmp_path)
    assert [len(list(shards.read_shard(path))) for path in paths] == [2, 1, 1]
    assert shards.read_text(tmp_path) == [*conversations, conversations[0]]


def test_a_shard_that_grows_is_written_from_time_to_time_and_at_its_end(tmp_path, monkeypatch):
    writes = []
    monkeypatch.setattr(shards, "_write", lambda *given: writes.append(len(given[-1])))
    list(shards.stored(tmp_path, texts(5)))
    assert writes == [5]
    monkeypatch.setattr(shards, "WRITE_SECONDS", -1)
    list(shards.stored(tmp_path, texts(5)))
    assert writes == [5, 1, 2, 3, 4, 5, 5]


def test_no_shard_is_written_over_where_one_before_it_is_gone(tmp_path):
    for one in texts(3):
        list(shards.stored(tmp_path, [one]))
    (tmp_path / "001.safetensors").unlink()
    list(shards.stored(tmp_path, texts(4)[3:]))
    assert [path.stem for path in shards.list_shards(tmp_path)] == ["000", "002", "003"]
    assert shards.read_text(tmp_path) == [texts(4)[number] for number in (0, 2, 3)]


def test_ids_of_more_than_16_bits_are_stored_in_32(tmp_path):
    def stored_type(largest: int) -> torch.dtype:
        one = Conversation((1, largest, 3), ((1, 3),), True, True, "chat")
        path = tmp_path / f"{largest}.safetensors"
        path.write_bytes(shards.pack([one]))
        assert list(shards.read_shard(path)) == [one]
        with tensor_file(path) as file:
            return file.get_tensor("ids").dtype

    assert stored_type(65_535) == torch.uint16
    assert stored_type(65_536) == stored_type(151_000) == torch.int32
