"""A run's folder: refusals, damage, and what is kept."""

import errno
import json
import os
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import run_directory
from testing import messages

CONFIG = {"agent": {"discount": 0.99}, "run": {"seed": 1}}


def _scheduled(schedule: str, env_frames: int) -> dict:
    return {
        "agent": {"discount": 0.99},
        "learner": {"learning_rate_schedule": schedule},
        "run": {"env_frames": env_frames},
    }


class FolderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)


class WorkdirTest(FolderTest, parameterized.TestCase):
    def test_the_same_config_resumes(self):
        self.assertFalse(run_directory.open_workdir(self._folder / "r", CONFIG, {"versions": {}}))
        self.assertTrue(run_directory.open_workdir(self._folder / "r", CONFIG, {"versions": {}}))
        self.assertEqual(run_directory.read_config(self._folder / "r"), CONFIG)

    def test_another_config_is_refused_with_the_differing_keys(self):
        run_directory.open_workdir(self._folder, CONFIG, {})
        before = (self._folder / "config.json").read_text()
        other = {"agent": {"discount": 0.95}, "run": {"seed": 2}}
        with messages.raises(
            run_directory.WorkdirError, "agent.discount", 0.99, 0.95, "run.seed", 1, 2
        ):
            run_directory.open_workdir(self._folder, other, {})
        self.assertEqual((self._folder / "config.json").read_text(), before)

    def test_another_config_names_the_command_that_resumes(self):
        command = "python -m launch.train --config=laser:catch --workdir=r"
        run_directory.open_workdir(self._folder, CONFIG, {run_directory.COMMAND: command})
        other = {"agent": {f"key_{number}": 1 for number in range(20)}, "run": {"seed": 1}}
        with self.assertRaises(run_directory.WorkdirError) as caught:
            run_directory.open_workdir(self._folder, other, {})
        self.assertIn(command, str(caught.exception))
        self.assertNotIn("agent.key_15", str(caught.exception))

    def test_changed_evaluation_episodes_are_written(self):
        for episodes in (30, 5):
            config = CONFIG | {"run": {"seed": 1, "evaluation_episodes": episodes}}
            run_directory.open_workdir(self._folder, config, {"versions": {"python": "3.11"}})
            self.assertEqual(run_directory.read_config(self._folder), config)
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted["versions"], {"python": "3.11"})

    def test_a_run_that_begins_again_from_another_one_notes_its_weights_of_now(self):
        for updates in (100, 150):
            origin = {"workdir": "runs/other", "learner_updates": updates}
            run_directory.open_workdir(self._folder, CONFIG, {run_directory.ORIGIN: origin})
            noted = json.loads((self._folder / "config.json").read_text())
            self.assertEqual(noted[run_directory.ORIGIN], origin)
        run_directory.open_workdir(self._folder, CONFIG, {})  # from a checkpoint of its own
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted[run_directory.ORIGIN], origin)

    @parameterized.parameters("constant", "linear")
    def test_evaluations_beside_training_may_change_and_need_not_have_been_known(self, schedule):
        config = _scheduled(schedule, 10)
        run_directory.open_workdir(self._folder, config, {})  # of a version that had none
        for env_frames in (10, 20):
            other = _scheduled(schedule, env_frames)
            other["run"] |= {"evaluate_every_env_frames": 5, "evaluation_episodes_beside": 3}
            self.assertTrue(run_directory.open_workdir(self._folder, other, {}, extend=True))

    def test_more_frames_are_the_same_run_at_a_constant_learning_rate(self):
        config = {"learner": {"learning_rate_schedule": "constant"}, "run": {"env_frames": 10}}
        longer = {**config, "run": {"env_frames": 20}}
        run_directory.open_workdir(self._folder, config, {"versions": "noted"})
        self.assertTrue(run_directory.open_workdir(self._folder, longer, {}))
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted, {"config": longer, "sweep_id": "", "versions": "noted"})
        with messages.raises(run_directory.WorkdirError, "run.env_frames", 20, 10):
            run_directory.open_workdir(self._folder, config, {})

    def test_a_key_that_is_newer_than_a_run_has_its_default_there(self):
        defaults = {"agent": {"discount": 0.9, "scales": ()}, "new": {"depth": 3}, "run": {}}
        now = {"agent": {"discount": 0.99, "scales": []}, "new": {"depth": 3}, "run": {"seed": 1}}
        other = now | {"agent": {"discount": 0.99, "scales": (2.0,)}}
        for opens, name in (
            (run_directory.open_workdir, "config.json"),
            (run_directory.open_sweep, "sweep.json"),
        ):
            workdir = self._folder / name
            opens(workdir, CONFIG, {})
            before = (workdir / name).read_text()
            self.assertTrue(opens(workdir, now, {}, defaults=defaults))
            with messages.raises(run_directory.WorkdirError, "scales", "[]", "[2.0"):
                opens(workdir, other, {}, defaults=defaults)
            self.assertEqual((workdir / name).read_text(), before)
        # What is not named now, either, is as it was.
        self.assertTrue(run_directory.open_sweep(workdir, CONFIG, {}, defaults=defaults))

    def test_a_run_that_is_older_than_a_key_goes_on_for_longer(self):
        old, now = _scheduled("constant", 10), _scheduled("constant", 20)
        now["agent"]["new"] = 1
        run_directory.open_workdir(self._folder, old, {})
        self.assertTrue(
            run_directory.open_workdir(self._folder, now, {}, defaults={"agent": {"new": 1}})
        )
        self.assertEqual(run_directory.read_config(self._folder), now)

    def test_where_it_is_computed_may_change(self):
        # Runs that were made before there was the key have none.
        one, two = ({"learner": {"replicas": replicas}, **CONFIG} for replicas in (1, 2))
        for before, now in ((CONFIG, one), (one, two)):
            longer = now | {"run": {"seed": 1, "env_frames": 20}}
            with tempfile.TemporaryDirectory() as folder:
                workdir = pathlib.Path(folder)
                run_directory.open_workdir(workdir, before, {})
                self.assertTrue(run_directory.open_workdir(workdir, now, {}))
                with messages.raises(run_directory.WorkdirError, "run.seed", 1, 2):
                    run_directory.open_workdir(workdir, now | {"run": {"seed": 2}}, {})
            with tempfile.TemporaryDirectory() as folder:
                workdir = pathlib.Path(folder)
                short = before | {"run": {"seed": 1, "env_frames": 10}}
                short["learner"] = before.get("learner", {}) | {
                    "learning_rate_schedule": "constant"
                }
                longer["learner"] = now["learner"] | {"learning_rate_schedule": "constant"}
                run_directory.open_workdir(workdir, short, {})
                self.assertTrue(run_directory.open_workdir(workdir, longer, {}))

    @parameterized.product(schedule=("linear", "constant"), extend=(False, True))
    def test_another_value_ties_a_run_to_its_frames(self, schedule, extend):
        config = _scheduled(schedule, 10)
        longer = {**_scheduled(schedule, 20), "agent": {"discount": 0.9}}
        run_directory.open_workdir(self._folder, config, {})
        with messages.raises(run_directory.WorkdirError, "run.env_frames", 10, 20):
            run_directory.open_workdir(self._folder, longer, {}, extend=extend)
        self.assertEqual(run_directory.read_config(self._folder), config)

    def test_a_schedule_is_the_reason_that_is_given_and_the_way_on(self):
        config = _scheduled("linear", 10_000)
        run_directory.open_workdir(self._folder, config, {})
        with messages.raises(
            run_directory.WorkdirError, "run.env_frames", 20000, 10000, "--extend", "--workdir"
        ):
            run_directory.open_workdir(self._folder, _scheduled("linear", 20_000), {})
        self.assertEqual(run_directory.read_config(self._folder), config)

    def test_a_schedule_is_extended_where_that_is_wanted_and_it_is_noted(self):
        run_directory.open_workdir(self._folder, _scheduled("linear", 10_000), {})
        for env_frames in (20_000, 40_000):
            config = _scheduled("linear", env_frames)
            with self.assertLogs(level="WARNING") as logs:
                self.assertTrue(run_directory.open_workdir(self._folder, config, {}, extend=True))
            messages.assert_names(logs.output[0], f"{env_frames:,}")
            self.assertEqual(run_directory.read_config(self._folder), config)
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted["extended_from_env_frames"], [10_000, 20_000])
        with self.assertNoLogs(level="WARNING"):  # the same command resumes
            run_directory.open_workdir(self._folder, config, {}, extend=True)
        with messages.raises(run_directory.WorkdirError, "run.env_frames", 40000, 20000):
            run_directory.open_workdir(self._folder, _scheduled("linear", 20_000), {}, extend=True)

    @parameterized.parameters(("constant", False), ("linear", True))
    def test_a_sweep_with_more_frames_is_not_finished(self, schedule, extend):
        run_directory.open_sweep(self._folder, _scheduled(schedule, 10), {"id": "a"})
        (self._folder / "finished").touch()
        (self._folder / "finished_members").mkdir()
        (self._folder / "finished_members/member_00").touch()
        self.assertTrue(
            run_directory.open_sweep(self._folder, _scheduled(schedule, 20), {}, extend=extend)
        )
        self.assertFalse((self._folder / "finished").exists())
        self.assertFalse((self._folder / "finished_members").exists())
        self.assertEqual(run_directory.read_sweep_id(self._folder), "a")

    def test_a_sweep_that_cannot_be_marked_as_unfinished_keeps_its_frames(self):
        # Else the next command would find all agents trained, with more frames than they have.
        run_directory.open_sweep(self._folder, _scheduled("constant", 10), {"id": "a"})
        (self._folder / "finished").touch()
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch.object(pathlib.Path, "replace", side_effect=full):
            with messages.raises(run_directory.WorkdirError, "No space left"):
                run_directory.open_sweep(self._folder, _scheduled("constant", 20), {})
        noted = run_directory.read_config(self._folder, run_directory.SWEEP_FILE)
        self.assertEqual(noted["run"]["env_frames"], 10)

    def test_a_run_of_another_sweep_is_refused_with_the_same_config(self):
        folder = self._folder / "member_03"
        run_directory.open_workdir(folder, CONFIG, {}, sweep_id="a")
        self.assertTrue(run_directory.open_workdir(folder, CONFIG, {}, sweep_id="a"))
        for sweep_id in ("b", ""):
            with messages.raises(run_directory.WorkdirError, "member_03"):
                run_directory.open_workdir(folder, CONFIG, {}, sweep_id=sweep_id)

    def test_a_sweep_is_told_from_others_and_old_ones_have_no_id(self):
        run_directory.open_sweep(self._folder / "s", CONFIG, {"id": "a"})
        self.assertTrue(run_directory.open_sweep(self._folder / "s", CONFIG, {"id": "b"}))
        self.assertEqual(run_directory.read_sweep_id(self._folder / "s"), "a")
        run_directory.open_sweep(self._folder / "old", CONFIG, {})
        self.assertEqual(run_directory.read_sweep_id(self._folder / "old"), "")

    def test_a_file_in_the_way_is_named(self):
        (self._folder / "r").write_text("mine")
        with messages.raises(run_directory.WorkdirError, self._folder / "r"):
            run_directory.open_workdir(self._folder / "r", CONFIG, {})
        self.assertEqual((self._folder / "r").read_text(), "mine")

    def test_a_damaged_config_is_named(self):
        for content in ('{"config": ', "null", "[]", "3", '{"config": null}', '{"config": [1]}'):
            (self._folder / "config.json").write_text(content)
            with messages.raises(run_directory.WorkdirError, "config.json"):
                run_directory.open_workdir(self._folder, CONFIG, {})
            with messages.raises(run_directory.WorkdirError, "config.json"):
                run_directory.read_config(self._folder)

    @parameterized.product(
        trace=(
            "checkpoints/learner/checkpoint-1.index",
            "checkpoints/replay/2026/DONE",
            "episodes.csv",
            "evaluation.json",
        ),
        opened=(run_directory.open_workdir, run_directory.open_sweep),
    )
    def test_what_a_run_left_without_its_config_is_not_taken_over(self, trace, opened):
        self._leave(trace)
        before = sorted(self._folder.rglob("*"))
        with messages.raises(run_directory.WorkdirError, "config.json"):
            opened(self._folder, CONFIG, {})
        self.assertEqual(sorted(self._folder.rglob("*")), before)

    @parameterized.product(
        trace=(
            "member_00/config.json",
            "population/lineage.csv",
            "finished_members/member_01",
            "replay/2026/DONE",
        ),
        opened=(run_directory.open_workdir, run_directory.open_sweep),
    )
    def test_what_a_sweep_left_without_its_config_is_not_taken_over(self, trace, opened):
        self._leave(trace)
        before = sorted(self._folder.rglob("*"))
        with messages.raises(run_directory.WorkdirError, "sweep.json"):
            opened(self._folder, CONFIG, {})
        self.assertEqual(sorted(self._folder.rglob("*")), before)

    def _leave(self, name: str) -> None:
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / name).touch()

    def _assert_lost(self) -> None:
        before = (self._folder / "config.json").read_text()
        with messages.raises(run_directory.WorkdirError, "checkpoints/learner"):  # fmt: skip
            run_directory.open_workdir(self._folder, CONFIG, {})
        self.assertEqual((self._folder / "config.json").read_text(), before)

    def test_lost_checkpoints_are_no_new_run(self):
        run_directory.open_workdir(self._folder, CONFIG, {})
        self._leave("checkpoints/learner/checkpoint-1.index")
        run_directory.mark_checkpointed(self._folder)
        self.assertTrue(run_directory.open_workdir(self._folder, CONFIG, {}))
        (self._folder / "checkpoints/learner/checkpoint-1.index").unlink()
        self._assert_lost()
        self._leave("checkpoints/learner/checkpoint-1.data-00000-of-00001")
        self._assert_lost()

    @parameterized.parameters("evaluation.json", "checkpoints/replay/2026/DONE")
    def test_lost_checkpoints_of_an_earlier_version_show_by_what_came_after(self, trace):
        run_directory.open_workdir(self._folder, CONFIG, {})
        self._leave(trace)
        self._assert_lost()

    @parameterized.parameters("episodes.csv", "tensorboard/events", "native.log")
    def test_a_run_that_ended_before_its_first_checkpoint_begins_again(self, trace):
        run_directory.open_workdir(self._folder, CONFIG, {})
        self._leave(trace)
        self.assertTrue(run_directory.open_workdir(self._folder, CONFIG, {}))

    def test_a_folder_whose_name_is_no_text_is_refused(self):
        folder = self._folder / os.fsdecode(b"a\xff")
        with messages.raises(run_directory.WorkdirError, "--workdir"):
            run_directory.open_workdir(folder, CONFIG, {})
        self.assertFalse(folder.exists())

    def test_a_full_disk_leaves_the_config_as_it_was(self):
        run_directory.open_workdir(self._folder, CONFIG, {})
        before = (self._folder / "config.json").read_text()
        with (
            mock.patch.object(os, "fsync", side_effect=OSError(28, "No space left on device")),
            messages.raises(run_directory.WorkdirError, "No space left"),
        ):
            run_directory.mark_checkpointed(self._folder)
        self.assertEqual((self._folder / "config.json").read_text(), before)
        self.assertEmpty(list(self._folder.glob("*.tmp")))

    @parameterized.parameters("checkpoints/replay", "checkpoints/learner", "tensorboard")
    def test_a_directory_without_permission_is_rejected(self, name):
        run_directory.open_workdir(self._folder, CONFIG, {})
        forbidden = self._folder / name
        allowed = mock.patch.object(os, "access", lambda path, mode: path != forbidden)
        with allowed, self.assertRaises(run_directory.WorkdirError) as caught:
            run_directory.open_workdir(self._folder, CONFIG, {})
        self.assertIn(str(forbidden), str(caught.exception))
        self.assertNotIn("space", str(caught.exception))

    def test_config_json_holds_what_else_is_noted(self):
        run_directory.open_workdir(self._folder, CONFIG, {"versions": {"tensorflow": "2.15.1"}})
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted["versions"], {"tensorflow": "2.15.1"})


if __name__ == "__main__":
    absltest.main()
