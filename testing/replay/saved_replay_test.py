"""Tests of replay checkpoints: damage, a full disk, directories with unusual names."""

import dataclasses
import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from unittest import mock

import numpy as np
import reverb
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import (
    dataset,
    resilient_writer,
    server,
    server_address,
    stored_unroll,
    table_checkpoint,
)
from laser_tf.replay.schemes import base, mixed
from testing import fakes, folders, messages

SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=5, frame_stack=2)
CONFIG = mixed.Mixed(
    unroll_length=5, frame_stack=2, batch_size=4, replay_fraction=0.75,
    capacity=50, queue_capacity=20,
)  # fmt: skip
OLDER, NEWER = 3, 8  # items in the two checkpoints


def _write(served: server.ReplayServer, items: int) -> None:
    replay = served.connect()
    target = resilient_writer.UnrollStream(replay, CONFIG.unroll_tables(base.QUEUE))
    unroll = stored_unroll.blank(SIGNATURE)
    first = replay.size()
    for number in range(first, items):
        unroll = unroll._replace(learner_update=np.int64(number), new_steps=np.int64(5))
        target.write([unroll], lambda: False)
    target.wait(lambda: False)


def _change_manifest(path: pathlib.Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def _halve(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: pathlib.Path, where: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= 1
    path.write_bytes(content)


_FILES = ("chunks.tfrecord", "items.tfrecord", "tables.tfrecord")
_OF_FILES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": _halve,
    "middle_bit": lambda path: _flip(path, 0.5),
}
_OF_MANIFEST = {
    "missing": lambda path: path.unlink(),
    "cut": _halve,
    "first_bit": lambda path: _flip(path, 0.0),
    "directory": lambda path: (path.unlink(), path.mkdir()),
    "list": lambda path: path.write_text("[]"),
    "nested": lambda path: path.write_text("[" * 100_000),
    "without_a_file": lambda path: _change_manifest(
        path, lambda manifest: manifest["crc32"].pop("chunks.tfrecord")
    ),
    "other_counts": lambda path: _change_manifest(
        path, lambda manifest: manifest["items"].update(replay=NEWER + 1)
    ),
    "another_table": lambda path: _change_manifest(
        path, lambda manifest: manifest["items"].update(other=1)
    ),
}
# Name -> function that damages a checkpoint.
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
    "no_files": lambda checkpoint: [path.unlink() for path in checkpoint.iterdir()],
    "no_directory": lambda checkpoint: shutil.rmtree(checkpoint),
    "no_parent": lambda checkpoint: shutil.rmtree(checkpoint.parent),
}


class FolderTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "replay"

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
        cls._saved = folders.of_class(cls)
        replay = server.ReplayServer(CONFIG, SIGNATURE, cls._saved / "replay")
        for items in (OLDER, NEWER):
            _write(replay, items)
            replay.checkpoint()
        replay.stop()

    def setUp(self):
        super().setUp()
        shutil.copytree(self._saved, self._folder.parent, dirs_exist_ok=True)

    def test_complete_checkpoint_is_restored_silently(self):
        with self.assertNoLogs(level="WARNING"):
            replay = self._serve()
        self.assertTrue(replay.is_restored)
        self.assertEqual(replay.connect().size(), NEWER)
        drawn = next(iter(dataset.items(replay.address, "replay", 100, in_flight=100)))
        self.assertEqual(set(drawn.learner_update.numpy()), set(range(NEWER)))

    @parameterized.parameters(*DAMAGES)
    def test_damaged_checkpoint_restores_the_previous(self, damage):
        DAMAGES[damage](table_checkpoint.find(self._folder))
        with self.assertLogs(level="WARNING") as logs:
            replay = self._serve()
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], self._folder)
        self.assertNotIn("\n", logs.output[0])
        self.assertEqual(replay.connect().size(), OLDER)

    def test_restored_previous_checkpoint_is_the_newest(self):
        DAMAGES["chunks_cut"](table_checkpoint.find(self._folder))
        with self.assertLogs(level="WARNING"):
            replay = self._serve()
        replay.checkpoint()
        replay.stop()
        again = self._serve()
        self.assertEqual(again.connect().size(), OLDER)
        shutil.rmtree(self._folder)
        again.stop()
        with self.assertLogs(level="WARNING"):
            self.assertEqual(self._serve().connect().size(), OLDER)

    @parameterized.parameters("chunks_empty", "manifest_cut")
    def test_two_damaged_checkpoints_start_empty(self, damage):
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

    def test_checkpoint_of_other_unrolls_starts_empty(self):
        shutil.rmtree(self._folder.with_name("replay_previous"))
        other = fakes.signature(SPEC, (), unroll_length=5, frame_stack=3)
        with messages.warns(self._folder, "[7, 4, 3, 1]", "[8, 4, 3, 1]"):
            replay = server.ReplayServer(CONFIG, other, self._folder)
        self.addCleanup(replay.stop)
        self.assertFalse(replay.is_restored)
        self.assertEqual(replay.connect().size(), 0)
        replay.connect().check(other)

    @parameterized.parameters(
        ({"capacity": 100}, "'replay'", 10, 20),
        ({"priority_exponent": 0.5}, "'replay'", "priority_exponent"),
        ({"frame_stack": 3}, "[7, 4, 3, 1]", "[8, 4, 3, 1]"),
    )
    def test_external_server_rejects_a_checkpoint_of_other_tables(self, overrides, *named):
        folder = self._folder.with_name("external")
        served = server.ReplayServer(CONFIG, SIGNATURE, folder, is_external=True)
        served.checkpoint()
        served.stop()
        config = dataclasses.replace(CONFIG, **overrides)
        signature = fakes.signature(SPEC, (), unroll_length=5, frame_stack=config.frame_stack)
        for _ in range(2):  # The checkpoint is not set aside.
            with messages.raises(errors.ConfigError, folder, "--checkpoint_folder", *named):
                server.ReplayServer(config, signature, folder, is_external=True)

    def test_port_taken_during_restore_keeps_the_checkpoint(self):
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
    @parameterized.parameters(IndexError, OSError)
    def test_failed_save_keeps_the_newest_checkpoint_only(self, error):
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
                mock.patch.object(reverb.Client, "checkpoint", fail),
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

    @parameterized.parameters("chunks_empty", "tables_empty")
    def test_truncated_save_is_detected(self, damage):
        replay = self._serve()
        _write(replay, OLDER)
        replay.checkpoint()
        _write(replay, NEWER)
        save = reverb.Client.checkpoint

        def lose(client):
            save(client)
            DAMAGES[damage](table_checkpoint.find(self._folder.with_name("replay_saving")))

        with mock.patch.object(reverb.Client, "checkpoint", lose), self.assertRaises(RuntimeError):
            replay.checkpoint()
        replay.stop()
        self.assertEqual(self._serve().connect().size(), OLDER)


class NamesTest(FolderTest):
    @parameterized.parameters(
        ("a[1]", "a1"), ("all*", "all1"), ("back\\slash", "backslash"), ("größe%41", "größeA")
    )
    def test_directory_may_have_any_name(self, name, neighbour):
        # As a pattern or as a quoted text, the name would match the neighbour.
        other = self._serve(self._folder.parent / neighbour / "replay")
        _write(other, 1)
        other.checkpoint()
        other.stop()
        folder = self._folder.parent / name / "replay"
        replay = self._serve(folder)
        _write(replay, NEWER)
        replay.checkpoint()
        replay.stop()
        with self.assertNoLogs(level="WARNING"):
            self.assertEqual(self._serve(folder).connect().size(), NEWER)


if __name__ == "__main__":
    absltest.main()
