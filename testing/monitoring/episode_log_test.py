"""Tests of the log of episodes: rows, crashes, full disks, damage and resumed runs."""

import logging
import threading

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.monitoring import episode_log
from laser_tf.workdir import run_directory
from testing import folders, messages, processes

HEADER = "env_frames,task,return,length\n"


def _row(env_frames: int, task: str, episode_return: float, length: int = 9) -> episode_log.Row:
    return episode_log.Row(env_frames, task, episode_return, length)


class EpisodeLogTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "episodes.csv"

    def _log(self) -> episode_log.EpisodeLog:
        return episode_log.EpisodeLog(self._folder, ("pong", "breakout"))

    def test_flushed_rows_are_read_by_task(self):
        log = self._log()
        self.assertEmpty(log.resume(None))
        log.add(_row(400, "pong", -21.0, 800))
        self.assertEqual(self._path.read_text(), HEADER)
        log.add(_row(480, "breakout", 0.125, 30))
        log.flush()
        log.add(_row(480, "pong", 1234567.0, 900))
        log.flush()
        log.flush()
        rows = "400,pong,-21,800\n480,breakout,0.125,30\n480,pong,1234567,900\n"
        self.assertEqual(self._path.read_text(), HEADER + rows)
        episodes = episode_log.read(self._folder)
        self.assertEqual(sorted(episodes), ["breakout", "pong"])
        np.testing.assert_array_equal(episodes["pong"].env_frames, [400, 480])
        np.testing.assert_array_equal(episodes["pong"].returns, [-21.0, 1234567.0])
        np.testing.assert_array_equal(episodes["pong"].lengths, [800, 900])

    def test_resumed_run_drops_rows_beyond_its_checkpoint(self):
        rows = ["100,pong,1,9\n", "200,breakout,2,8\n", "201,pong,3,9\n"]
        self._path.write_text(HEADER + "".join(rows) + "300,pong,4")
        log = self._log()
        kept = [_row(100, "pong", 1.0, 9), _row(200, "breakout", 2.0, 8)]
        self.assertEqual(log.resume(200), kept)
        self.assertEqual(self._path.read_text(), HEADER + rows[0] + rows[1])
        log.add(_row(250, "pong", 5.0))
        log.flush()
        self.assertEqual(self._path.read_text(), HEADER + rows[0] + rows[1] + "250,pong,5,9\n")

    @parameterized.parameters((None, HEADER + "0,pong,1,9\n"), (1_000, None))
    def test_without_a_checkpoint_or_file_there_are_no_rows(self, env_frames, content):
        if content:
            self._path.write_text(content)
        self.assertEmpty(self._log().resume(env_frames))
        self.assertEqual(self._path.read_text(), HEADER)

    @parameterized.parameters("", "200,po", "200,pong,1,9")
    def test_incomplete_last_row_is_omitted(self, torn):
        self._path.write_text(HEADER + "100,pong,7,9\n" + torn)
        with self.assertNoLogs(level=logging.WARNING):
            episodes = episode_log.read(self._folder)
        np.testing.assert_array_equal(episodes["pong"].returns, [7.0])

    def test_damaged_rows_are_logged_and_the_others_read(self):
        self._path.write_bytes(HEADER.encode() + b"100,pong,7,9\n\0\0\xff\n1,2\n200,pong,8,9\n")
        with self.assertLogs(level=logging.WARNING) as logs:
            episodes = episode_log.read(self._folder)
        messages.assert_names(logs.output[0], self._path, 2)
        np.testing.assert_array_equal(episodes["pong"].returns, [7.0, 8.0])

    @parameterized.parameters(
        f"{2**63},pong,1,9", f"1,pong,1,{10**30}", "-1,pong,1,9", "1,pong,1e999,9", "1,pong,nan,9"
    )
    def test_numbers_out_of_range_are_damaged_rows(self, row):
        self._path.write_text(f"{HEADER}{row}\n200,pong,8,9\n")
        with self.assertLogs(level=logging.WARNING):
            episodes = episode_log.read(self._folder)
        np.testing.assert_array_equal(episodes["pong"].returns, [8.0])
        with self.assertLogs(level=logging.WARNING):
            self.assertLen(self._log().resume(1_000), 1)

    _RESAVED = {
        "index_column": ",env_frames,task,return,length\n0,100,pong,1,9\n1,200,pong,2,9\n",
        "semicolons": "env_frames;task;return;length\n100;pong;1;9\n200;pong;2;9\n",
        "other_order": "env_frames,task,length,return\n100,pong,9,1\n200,pong,9,2\n",
        "quotes": '"env_frames","task","return","length"\n100,"pong",1,9\n200,"pong",2,9\n',
        "another_task": f"{HEADER}100,asterix,1,9\n200,asterix,2,9\n",
        "binary": "\0\1\2\n\3\n",
    }

    @parameterized.named_parameters(
        *((name, text.encode()) for name, text in _RESAVED.items()),
        ("utf_16", f"{HEADER}100,pong,1,9\n200,pong,2,9\n".encode("utf-16")),
    )
    def test_resaved_file_is_rejected_and_unchanged(self, content):
        self._path.write_bytes(content)
        for call in (self._log().check, lambda: self._log().resume(1_000)):
            with messages.raises(run_directory.WorkdirError, self._path):
                call()
        self.assertEqual(list(self._folder.iterdir()), [self._path])
        self.assertEqual(self._path.read_bytes(), content)

    @parameterized.named_parameters(
        ("byte_order_mark", f"{HEADER}100,pong,1,9\n200,pong,2,9\n".encode("utf-8-sig")),
        ("windows_lines", f"{HEADER}100,pong,1,9\n200,pong,2,9\n".replace("\n", "\r\n").encode()),
        ("no_header", b"100,pong,1,9\n200,pong,2,9\n"),
        ("floats", f"{HEADER}100,pong,1.0,9\n200,pong,2.0,9\n".encode()),
    )
    def test_resaved_file_with_readable_rows_resumes(self, content):
        self._path.write_bytes(content)
        with self.assertNoLogs(level=logging.WARNING):
            self._log().resume(1_000)
        self.assertEqual(self._path.read_text(), HEADER + "100,pong,1,9\n200,pong,2,9\n")
        self.assertEqual(list(self._folder.iterdir()), [self._path])

    def test_few_unreadable_rows_are_kept_in_a_copy(self):
        kept = HEADER + "100,pong,1,9\n200,pong,2,9\n"
        copies = []
        for damage in ("1OO,pong,1,9\n", "100,asterix,1,9\n"):
            content = kept + damage + "900,pong,3,9\n"
            self._path.write_text(content)
            copies.append(content)
            with messages.warns():
                self.assertLen(self._log().resume(500), 2)
            self.assertEqual(self._path.read_text(), kept)
            found = [path.read_text() for path in sorted(self._folder.glob("*.damaged*"))]
            self.assertEqual(found, copies)
        self.assertTrue((self._folder / "episodes.csv.damaged").exists())

    def test_without_a_file_or_rows_there_are_no_episodes(self):
        self.assertEmpty(episode_log.read(self._folder))
        self._path.write_text(HEADER)
        self.assertEmpty(episode_log.read(self._folder))

    @parameterized.parameters(0, 5)
    def test_failed_write_is_logged_once_and_repeated(self, written_bytes):
        log = self._log()
        log.resume(None)
        log.add(_row(100, "pong", 1.0))
        # Ends within the row.
        with processes.full_disk(len(HEADER) + written_bytes), messages.warns(self._path):
            log.flush()
            log.flush()
        self.assertEqual(self._path.read_text(), HEADER)
        log.add(_row(200, "pong", 2.0))
        with self.assertLogs(level=logging.INFO) as logs:
            log.flush()
        messages.assert_names(logs.output[0], self._path)
        self.assertEqual(self._path.read_text(), HEADER + "100,pong,1,9\n200,pong,2,9\n")

    def test_missing_directory_is_rejected(self):
        log = episode_log.EpisodeLog(self._folder / "none", ("pong",))
        with messages.raises(run_directory.WorkdirError, self._folder / "none/episodes.csv"):
            log.resume(None)

    def test_episodes_of_several_threads_are_complete(self):
        log = self._log()
        log.resume(None)

        def act() -> None:
            for k in range(5_000):
                log.add(_row(k, "pong", float(k)))

        actors = [threading.Thread(target=act) for _ in range(2)]
        for actor in actors:
            actor.start()
        while any(actor.is_alive() for actor in actors):
            log.flush()
        log.flush()
        returns = episode_log.read(self._folder)["pong"].returns
        np.testing.assert_array_equal(np.sort(returns), np.repeat(np.arange(5_000), 2))


if __name__ == "__main__":
    absltest.main()
