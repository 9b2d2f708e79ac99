"""Tests of run directories: resumption, rejection, damage and recorded content."""

import errno
import json
import os
import pathlib
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import lock, run_directory
from testing import folders, messages

CONFIG = {"agent": {"discount": 0.99}, "run": {"seed": 1}}
CHECKPOINT = "checkpoints/learner/checkpoint-1.index"


def _open_sweep(folder: pathlib.Path, *arguments: dict, **options) -> bool:
    return run_directory.open_directory(folder / run_directory.SWEEP_FILE, *arguments, **options)


OPENERS = ((run_directory.open_workdir, "config.json"), (_open_sweep, "sweep.json"))


def _scheduled(schedule: str, env_frames: int) -> dict:
    return {
        "agent": {"discount": 0.99},
        "learner": {"learning_rate_schedule": schedule},
        "run": {"env_frames": env_frames},
    }


def _files(folder: pathlib.Path) -> dict[pathlib.Path, bytes]:
    """Returns the content of every file but the lock, which any opening may create."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != lock.FILE)
    return {path: path.read_bytes() for path in paths}


class RunDirectoryTest(folders.FolderTest):
    def _leave(self, name: str) -> None:
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / name).touch()

    def _open(self, config: dict, extra: dict | None = None, **options) -> bool:
        return run_directory.open_workdir(self._folder, config, extra or {}, **options)

    def _assert_rejected(self, named: tuple, config: dict, **options) -> None:
        """Asserts that an error names keys and values, and that no file changes."""
        before = _files(self._folder)
        with messages.raises(run_directory.WorkdirError, *named):
            self._open(config, **options)
        self.assertEqual(_files(self._folder), before)

    def _content(self) -> dict:
        return json.loads((self._folder / "config.json").read_text())

    def test_same_config_resumes(self):
        extra = {"versions": {"tensorflow": "2.15.1"}}
        self.assertFalse(self._open(CONFIG, extra))
        self.assertTrue(self._open(CONFIG, extra))
        self.assertEqual(self._content(), {"config": CONFIG, "sweep_id": "", **extra})

    def test_other_config_is_rejected_with_keys_and_command(self):
        recorded = {run_directory.COMMAND: "python -m launch.train --workdir=moved"}
        self._open(CONFIG, recorded)
        command = f"python -m launch.train --workdir={self._folder}"
        other = {"agent": {"discount": 0.95}, "run": {"seed": 2}}
        named = ("agent.discount", 0.99, 0.95, "run.seed", 1, 2, command)
        self._assert_rejected(named, other)

    def test_run_that_starts_again_records_its_newest_origin(self):
        for updates in (100, 150):
            origin = {"workdir": "runs/other", "learner_updates": updates}
            self._open(CONFIG, {run_directory.ORIGIN: origin})
            self.assertEqual(self._content()[run_directory.ORIGIN], origin)
        self.assertEqual(run_directory.read_origin(self._folder), "runs/other")

    def test_changeable_keys_are_written(self):
        self._open(CONFIG)
        other = {**CONFIG, "learner": {"num_devices": 2}}
        other["run"] = {"seed": 1, "evaluation_episodes": 5}
        self.assertTrue(self._open(other))
        self.assertEqual(run_directory.read_config(self._folder), other)
        self._assert_rejected(("run.seed", 1, 2), other | {"run": {"seed": 2}})

    @parameterized.parameters(*OPENERS)
    def test_newer_key_has_its_default_in_an_older_run(self, opens, name):
        defaults = {"agent": {"discount": 0.9, "scales": ()}, "new": {"depth": 3}, "run": {}}
        now = {"agent": {"discount": 0.99, "scales": []}, "new": {"depth": 3}, "run": {"seed": 1}}
        other = now | {"agent": {"discount": 0.99, "scales": (2.0,)}}
        opens(self._folder, CONFIG, {})
        before = (self._folder / name).read_text()
        self.assertTrue(opens(self._folder, now, {}, defaults=defaults))
        with messages.raises(run_directory.WorkdirError, "scales", "[]", "[2.0"):
            opens(self._folder, other, {}, defaults=defaults)
        self.assertEqual((self._folder / name).read_text(), before)

    def test_more_frames_continue_at_a_constant_learning_rate(self):
        config, longer = _scheduled("constant", 10), _scheduled("constant", 20)
        longer["agent"]["new"] = 1
        longer["learner"]["num_devices"] = 2
        self._open(config, {"versions": "noted"})
        defaults = {"agent": {"new": 1}}
        self.assertTrue(self._open(longer, defaults=defaults))
        expected = {"config": longer, "sweep_id": "", "versions": "noted"}
        self.assertEqual(self._content(), expected)
        self._assert_rejected(("run.env_frames", 20, 10), config, defaults=defaults)

    def test_schedule_is_extended_only_on_request(self):
        config = _scheduled("linear", 10_000)
        self._open(config)
        named = ("run.env_frames", 20000, 10000, "--extend", "--workdir")
        self._assert_rejected(named, _scheduled("linear", 20_000))
        for env_frames in (20_000, 40_000):
            config = _scheduled("linear", env_frames)
            with self.assertLogs(level="WARNING") as logs:
                self.assertTrue(self._open(config, extend=True))
            messages.assert_names(logs.output[0], f"{env_frames:,}")
            self.assertEqual(run_directory.read_config(self._folder), config)
        self.assertEqual(self._content()["extended_from_env_frames"], [10_000, 20_000])
        with self.assertNoLogs(level="WARNING"):  # The same command resumes.
            self._open(config, extend=True)
        named = ("run.env_frames", 40000, 20000)
        self._assert_rejected(named, _scheduled("linear", 20_000), extend=True)

    def test_file_or_dangling_link_is_rejected(self):
        (self._folder / "file").touch()
        (self._folder / "link").symlink_to(self._folder / "missing")
        for name in ("file", "link"):
            with messages.raises(run_directory.WorkdirError, self._folder / name, "--workdir"):
                run_directory.open_workdir(self._folder / name, CONFIG, {})

    def test_name_in_another_encoding_is_rejected(self):
        folder = pathlib.Path(os.fsdecode(bytes(self._folder / "caf") + b"\xe9"))
        with messages.raises(run_directory.WorkdirError, "--workdir", "UTF-8"):
            run_directory.open_workdir(folder, CONFIG, {})
        self.assertFalse(folder.exists())

    def test_overridden_keys_may_differ_and_are_recorded(self):
        config, key = _scheduled("linear", 10), "learner.learning_rate_schedule"
        self._open(config, {"versions": "noted"})
        now = _scheduled("constant", 10)
        before = self._content()
        self._assert_rejected((f"--override={key}=constant",), now)
        other = now | {"agent": {"discount": 0.5}}
        self._assert_rejected(("agent.discount", 0.99, 0.5), other, overridden=[key])
        self._open(now, overridden=[key])
        self.assertEqual(run_directory.read_overrides(self._folder, config), {key: "constant"})
        (entry,) = run_directory.record_overrides(self._folder, 7)
        self.assertEqual(self._content(), before | {"config": now, "overrides": [entry]})
        self.assertEqual(entry["env_frames"], 7)
        self.assertEqual(entry["changes"], {key: {"before": "linear", "now": "constant"}})
        self._open(now)
        self.assertEmpty(run_directory.record_overrides(self._folder, 9))

    def test_overridden_length_extends_a_schedule(self):
        key = "run.env_frames"
        self._open(_scheduled("linear", 10))
        self._assert_rejected((key, 10, 5), _scheduled("linear", 5), overridden=[key])
        with self.assertLogs(level="WARNING"):
            self._open(_scheduled("linear", 20), overridden=[key])
        self.assertEqual(self._content()["config"], _scheduled("linear", 20))
        self.assertEqual(self._content()["extended_from_env_frames"], [10])
        (entry,) = self._content()["overrides"]
        self.assertEqual(entry["changes"], {key: {"before": 10, "now": 20}})

    @parameterized.parameters(("constant", False), ("linear", True))
    def test_sweep_with_more_frames_is_not_finished(self, schedule, extend):
        _open_sweep(self._folder, _scheduled(schedule, 10), {"id": "a"})
        self._leave("finished")
        self._leave("finished_members/member_00")
        longer = _scheduled(schedule, 20)
        self.assertTrue(_open_sweep(self._folder, longer, {}, extend=extend))
        self.assertFalse((self._folder / "finished").exists())
        self.assertFalse((self._folder / "finished_members").exists())
        self.assertEqual(run_directory.read_sweep_id(self._folder), "a")

    def test_sweep_whose_mark_cannot_be_removed_keeps_its_frames(self):
        # Otherwise the next command would regard members as finished with more frames.
        _open_sweep(self._folder, _scheduled("constant", 10), {"id": "a"})
        self._leave("finished")
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch.object(pathlib.Path, "replace", side_effect=full):
            with messages.raises(run_directory.WorkdirError, "No space left"):
                _open_sweep(self._folder, _scheduled("constant", 20), {})
        noted = json.loads((self._folder / "sweep.json").read_text())["config"]
        self.assertEqual(noted["run"]["env_frames"], 10)

    def test_run_of_another_sweep_is_rejected(self):
        folder = self._folder / "member_03"
        run_directory.open_workdir(folder, CONFIG, {}, sweep_id="a")
        self.assertTrue(run_directory.open_workdir(folder, CONFIG, {}, sweep_id="a"))
        other, before = CONFIG | {"run": {"seed": 2}}, (folder / "config.json").read_text()
        for sweep_id in ("b", ""):
            with messages.raises(run_directory.WorkdirError, "member_03"):
                run_directory.open_workdir(
                    folder, other, {}, sweep_id=sweep_id, overridden=["run.seed"]
                )
        self.assertEqual((folder / "config.json").read_text(), before)

    @parameterized.parameters(
        '{"config": ', "null", "[]", "{}", '{"config": null}', '{"config": {"run": 3}}'
    )
    def test_damaged_config_is_rejected(self, content):
        (self._folder / "config.json").write_text(content)
        self._assert_rejected(("config.json",), CONFIG)
        with messages.raises(run_directory.WorkdirError, "config.json"):
            run_directory.read_config(self._folder)

    @parameterized.product(
        trace=(
            (CHECKPOINT, "config.json"),
            ("checkpoints/replay/2026/DONE", "config.json"),
            ("episodes.csv", "config.json"),
            ("member_00/config.json", "sweep.json"),
            ("finished_members/member_01", "sweep.json"),
        ),
        opens=(run_directory.open_workdir, _open_sweep),
    )
    def test_files_without_their_config_are_not_taken_over(self, trace, opens):
        file, missing = trace
        self._leave(file)
        before = sorted(self._folder.rglob("*"))
        with messages.raises(run_directory.WorkdirError, missing):
            opens(self._folder, CONFIG, {})
        self.assertEqual(sorted(self._folder.rglob("*")), before)

    def test_lost_checkpoints_are_no_new_run(self):
        self._open(CONFIG)
        self._leave("episodes.csv")
        self.assertTrue(self._open(CONFIG))
        self._leave(CHECKPOINT)
        run_directory.mark_checkpointed(self._folder)
        self.assertTrue(self._open(CONFIG))
        (self._folder / CHECKPOINT).unlink()
        self._assert_rejected(("checkpoints/learner",), CONFIG)

    def test_full_disk_keeps_the_config(self):
        self._open(CONFIG)
        before = self._content()
        full = OSError(errno.ENOSPC, "No space left on device")
        with (
            mock.patch.object(os, "fsync", side_effect=full),
            messages.raises(run_directory.WorkdirError, "No space left"),
        ):
            run_directory.mark_checkpointed(self._folder)
        self.assertEqual(self._content(), before)
        self.assertEmpty(list(self._folder.glob("*.tmp")))


if __name__ == "__main__":
    absltest.main()
