"""Tests of the liveness of a replay server, with an injected clock."""

from absl.testing import absltest

from laser_tf.replay import liveness, table_info
from testing import messages

ADDRESS = "localhost:1"


def _info(age: float, inserts: int) -> dict[str, table_info.TableInfo]:
    """Creates the answer of a server that is `age` seconds old."""
    info = table_info.TableInfo()
    info.table_worker_time.sleeping_ms = int(1000 * age)
    info.rate_limiter_info.insert_stats.completed = inserts
    return {"online": info}


class LivenessTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._time = 100.0
        self._liveness = liveness.Liveness(clock=lambda: self._time)

    def _answer(self, age: float, inserts: int) -> bool:
        return self._liveness.record_answer(_info(age, inserts), ADDRESS)

    def test_first_answer_is_no_restart(self):
        self.assertFalse(self._answer(age=50, inserts=7))

    def test_aging_server_is_no_restart(self):
        for number in range(5):
            self.assertFalse(self._answer(age=50 + 2 * number, inserts=number))
            self._time += 2
        self.assertEqual(self._liveness.restarts, 0)

    def test_younger_server_is_a_restart(self):
        self._answer(age=50, inserts=7)
        self._time += 2
        self.assertTrue(self._answer(age=1, inserts=9))
        self.assertEqual(self._liveness.restarts, 1)
        self._time += 2
        self.assertFalse(self._answer(age=3, inserts=10))

    def test_fewer_inserts_are_a_restart(self):
        self._answer(age=50, inserts=7)
        self._time += 2
        self.assertTrue(self._answer(age=52, inserts=6))

    def test_server_that_started_within_a_long_silence_is_a_restart(self):
        self._answer(age=1, inserts=0)
        self._time += 60
        self.assertTrue(self._answer(age=40, inserts=5))

    def test_moved_server_is_a_restart(self):
        self._answer(age=50, inserts=7)
        self._liveness.record_move()
        self.assertTrue(self._answer(age=50, inserts=7))

    def test_lasting_silence_is_logged_once(self):
        self._answer(age=50, inserts=7)
        with self.assertLogs(level="INFO") as logs:
            for _ in range(4):
                self._time += 3
                self._liveness.record_silence(ADDRESS, 3)
                self.assertFalse(self._liveness.is_answering)
            self._time += 1
            self.assertFalse(self._answer(age=63, inserts=7))
        self.assertTrue(self._liveness.is_answering)
        self.assertEqual([record.levelname for record in logs.records], ["WARNING", "INFO"])
        for line in logs.output:
            messages.assert_names(line, ADDRESS)

    def test_short_silence_is_not_logged(self):
        self._answer(age=50, inserts=7)
        with self.assertNoLogs():
            self._time += 3
            self._liveness.record_silence(ADDRESS, 3)
            self._time += 1
            self._answer(age=54, inserts=7)


if __name__ == "__main__":
    absltest.main()
