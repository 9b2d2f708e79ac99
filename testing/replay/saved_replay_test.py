"""Tests of replay checkpoints: damage, a full disk, directories with unusual names."""

import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from unittest import mock

import numpy as np
import reverb
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.replay import (
    dataset,
    server,
    server_address,
    table_checkpoint,
    writers,
)
from laser_tf.replay.schemes import base, mixed
from testing import fakes, messages

SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=5, frame_stack=2)
CONFIG = mixed.Mixed(
    unroll_length=5,
    frame_stack=2,
    batch_size=4,
    replay_fraction=0.75,
    capacity=50,
    queue_capacity=20,
)
OLDER, NEWER = 3, 8  # items in the two checkpoints


def _write(served: server.ReplayServer, items: int) -> None:
    replay = served.connect()
    target = writers.UnrollStream(
        replay,
        CONFIG.unroll_tables(base.QUEUE),
        CONFIG.counting_tables(base.QUEUE),
    )
    unroll = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), SIGNATURE
    )
    first = replay.size()
    for number in range(first, items):
        unroll = unroll._replace(learner_update=np.int64(number), new_steps=np.int64(5))
        target.write([unroll], lambda: False)
    target.wait(lambda: False)


def _change_manifest(checkpoint: pathlib.Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((checkpoint / table_checkpoint.MANIFEST).read_text())
    change(manifest)
    (checkpoint / table_checkpoint.MANIFEST).write_text(json.dumps(manifest))


def _halve(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: pathlib.Path, where: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= 1
    path.write_bytes(content)


_FILES = ("chunks.tfrecord", "items.tfrecord", "tables.tfrecord")
_OF_FILES = {
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "cut": _halve,
    "without_its_end": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "with_more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "first_bit": lambda path: _flip(path, 0.0),
    "middle_bit": lambda path: _flip(path, 0.5),
    "last_bit": lambda path: _flip(path, 1.0),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a_folder": lambda path: (path.unlink(), path.mkdir()),
}
_OF_MANIFEST = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": _halve,
    "first_bit": lambda path: _flip(path, 0.0),
    "a_list": lambda path: path.write_text("[]"),
    "null": lambda path: path.write_text("null"),
    "nested_too_deeply": lambda path: path.write_text("[" * 100_000),
    "without_files": lambda path: path.write_text('{"items": {}}'),
    "of_a_file_less": lambda path: _change_manifest(
        path.parent, lambda manifest: manifest["files"].pop("chunks.tfrecord")
    ),
    "without_a_checksum": lambda path: _change_manifest(
        path.parent, lambda manifest: manifest["files"]["chunks.tfrecord"].pop("crc32")
    ),
    "other_counts": lambda path: _change_manifest(
        path.parent, lambda manifest: manifest["items"].update(replay=NEWER + 1)
    ),
    "another_table": lambda path: _change_manifest(
        path.parent, lambda manifest: manifest["items"].update(other=1)
    ),
}
# name -> what it does to a checkpoint
DAMAGES = {
    **{
        f"{name.partition('.')[0]}_{kind}": lambda checkpoint, name=name, act=act: act(
            checkpoint / name
        )
        for name in _FILES
        for kind, act in _OF_FILES.items()
    },
    **{
        f"manifest_{kind}": lambda checkpoint, act=act: act(checkpoint / table_checkpoint.MANIFEST)
        for kind, act in _OF_MANIFEST.items()
    },
    "done_missing": lambda checkpoint: (checkpoint / "DONE").unlink(),
    "nothing_in_it": lambda checkpoint: [path.unlink() for path in checkpoint.iterdir()],
    "gone": lambda checkpoint: shutil.rmtree(checkpoint),
    "folder_gone": lambda checkpoint: shutil.rmtree(checkpoint.parent),
}


class FolderTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name) / "replay"

    def _serve(self, folder: pathlib.Path | None = None) -> server.ReplayServer:
        replay = server.ReplayServer(CONFIG, SIGNATURE, folder or self._folder)
        self.addCleanup(replay.stop)
        return replay

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._folder.parent.iterdir())


class DamageTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._saved = pathlib.Path(cls.enter_context(tempfile.TemporaryDirectory()))
        replay = server.ReplayServer(CONFIG, SIGNATURE, cls._saved / "replay")
        for items in (OLDER, NEWER):
            _write(replay, items)
            replay.checkpoint()
        replay.stop()

    def setUp(self):
        super().setUp()
        shutil.copytree(self._saved, self._folder.parent, dirs_exist_ok=True)

    def test_whole_it_comes_back_without_a_word(self):
        with self.assertNoLogs(level="WARNING"):
            replay = self._serve()
        self.assertTrue(replay.is_restored)
        self.assertEqual(replay.connect().size(), NEWER)
        drawn = next(iter(dataset.unrolls(replay.address, "replay", 100, in_flight=100)))
        self.assertEqual(set(drawn.learner_update.numpy()), set(range(NEWER)))

    @parameterized.parameters(*DAMAGES)
    def test_a_damaged_checkpoint_falls_back_to_the_one_before(self, damage):
        DAMAGES[damage](table_checkpoint.find(self._folder))
        with self.assertLogs(level="WARNING") as logs:
            replay = self._serve()
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], self._folder)
        self.assertNotIn("\n", logs.output[0])
        self.assertEqual(replay.connect().size(), OLDER)
        # What has come back is the newest one now, and is kept when the next one is saved.
        replay.checkpoint()
        replay.stop()
        again = self._serve()
        self.assertEqual(again.connect().size(), OLDER)
        shutil.rmtree(self._folder)
        again.stop()
        with self.assertLogs(level="WARNING"):
            self.assertEqual(self._serve().connect().size(), OLDER)

    @parameterized.parameters("chunks_empty", "items_missing", "manifest_cut", "done_missing")
    def test_two_damaged_ones_leave_an_empty_replay(self, damage):
        for folder in (self._folder, self._folder.with_name("replay_previous")):
            DAMAGES[damage](table_checkpoint.find(folder))
        with self.assertLogs(level="WARNING") as logs:
            replay = self._serve()
        self.assertLen(logs.output, 2)
        self.assertFalse(replay.is_restored)
        self.assertEqual(replay.connect().size(), 0)
        self.assertEqual(self._names(), ["replay_damaged"])
        _write(replay, 2)
        replay.checkpoint()
        replay.stop()
        self.assertEqual(self._serve().connect().size(), 2)

    def test_damaged_ones_do_not_pile_up(self):
        for _ in range(3):
            DAMAGES["chunks_cut"](table_checkpoint.find(self._folder))
            with self.assertLogs(level="WARNING"):
                replay = self._serve()
            replay.checkpoint()
            replay.stop()
        self.assertEqual(self._names(), ["replay", "replay_damaged", "replay_previous"])

    def test_one_of_other_unrolls_leaves_an_empty_replay(self):
        shutil.rmtree(self._folder.with_name("replay_previous"))
        other = fakes.signature(SPEC, (), unroll_length=5, frame_stack=3)
        with self.assertLogs(level="WARNING") as logs:
            replay = server.ReplayServer(CONFIG, other, self._folder)
        self.addCleanup(replay.stop)
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], self._folder, "[7, 4, 3, 1]", "[8, 4, 3, 1]")
        self.assertFalse(replay.is_restored)
        self.assertEqual(replay.connect().size(), 0)
        replay.connect().check(other)

    def test_a_port_that_is_taken_meanwhile_costs_no_checkpoint(self):
        with (
            mock.patch.object(reverb, "Server", side_effect=RuntimeError("cannot bind")),
            mock.patch.object(
                server_address, "check_port", side_effect=[None, ValueError("in use")]
            ),
            self.assertRaises(ValueError),
        ):
            self._serve()
        self.assertEqual(self._serve().connect().size(), NEWER)


class FullDiskTest(FolderTest):
    def _fill(self, checkpoint: Callable[[], str]) -> mock._patch:
        return mock.patch.object(reverb.Client, "checkpoint", checkpoint)

    @parameterized.parameters(IndexError, RuntimeError, OSError, ValueError, KeyError)
    def test_a_failed_save_leaves_the_one_before_and_nothing_of_its_own(self, error):
        replay = self._serve()
        _write(replay, OLDER)
        replay.checkpoint()
        _write(replay, NEWER)
        plain = replay._plain_parent

        def fail(_):
            part = self._folder.with_name("replay_saving") / "2026" / "chunks.tfrecord"
            part.parent.mkdir(parents=True)
            part.write_bytes(b"half")
            raise error(f"{plain}/replay_saving/2026/chunks.tfrecord; No space left on device")

        for _ in range(3):
            with (
                self._fill(fail),
                messages.raises(RuntimeError, f"{self._folder}_saving", "No space left"),
            ):
                replay.checkpoint()
            self.assertEqual(self._names(), ["replay"])
        copy = self._folder.parent / "copy" / "replay"
        shutil.copytree(self._folder, copy)
        self.assertEqual(self._serve(copy).connect().size(), OLDER)
        shutil.rmtree(copy.parent)
        replay.checkpoint()
        replay.stop()
        self.assertEqual(self._names(), ["replay", "replay_previous"])
        self.assertEqual(self._serve().connect().size(), NEWER)

    @parameterized.parameters(*(f"{name.partition('.')[0]}_empty" for name in _FILES))
    def test_a_save_that_lost_its_end_without_an_error_is_noticed(self, damage):
        replay = self._serve()
        _write(replay, OLDER)
        replay.checkpoint()
        _write(replay, NEWER)
        save = reverb.Client.checkpoint

        def lose(client):
            save(client)
            DAMAGES[damage](table_checkpoint.find(self._folder.with_name("replay_saving")))

        with self._fill(lose), self.assertRaises(RuntimeError):
            replay.checkpoint()
        replay.stop()
        self.assertEqual(self._serve().connect().size(), OLDER)

    def test_what_a_killed_process_left_half_written_is_removed(self):
        part = self._folder.with_name("replay_saving") / "2026"
        part.mkdir(parents=True)
        (part / "chunks.tfrecord").write_bytes(b"half")
        with self.assertNoLogs(level="WARNING"):
            self.assertFalse(self._serve().is_restored)
        self.assertEmpty(self._names())


class NamesTest(FolderTest):
    @parameterized.parameters(
        "a[1]", "[ab]", "what?", "all*", "back\\slash", "50% off", "%41", "größe", "-r", "a'\"b",
        "{a,b}", "new\nline",
    )  # fmt: skip
    def test_a_folder_may_have_any_name(self, name):
        # A neighbour that the name would match, were it a pattern.
        for neighbour in ("a1", "a", "whatx"):
            other = self._serve(self._folder.parent / neighbour / "replay")
            _write(other, 1)
            other.checkpoint()
            other.stop()
        folder = self._folder.parent / name / "replay"
        replay = self._serve(folder)
        for items in (OLDER, NEWER):
            _write(replay, items)
            replay.checkpoint()
        replay.stop()
        with self.assertNoLogs(level="WARNING"):
            self.assertEqual(self._serve(folder).connect().size(), NEWER)


if __name__ == "__main__":
    absltest.main()
