"""When the benchmark of a run on several processes begins to measure."""

from absl.testing import absltest

from tools import cluster_benchmark

_LEARNS = {"throughput/env_frames_per_second": 160.0, "cluster/reporting_actors": 2.0}


class HaveBegunTest(absltest.TestCase):
    def test_one_process_has_begun_with_its_first_row(self):
        self.assertFalse(cluster_benchmark.have_begun({}, 0))
        self.assertTrue(cluster_benchmark.have_begun({160: _LEARNS}, 0))

    def test_all_actors_act_not_only_those_that_were_first(self):
        first = _LEARNS | {"cluster/actor_00/agent_steps": 320.0}
        waiting = first | {"cluster/actor_01/agent_steps": 0.0}
        all_act = first | {"cluster/actor_01/agent_steps": 40.0}
        self.assertFalse(cluster_benchmark.have_begun({160: first}, 2))
        self.assertFalse(cluster_benchmark.have_begun({160: first, 320: waiting}, 2))
        self.assertTrue(cluster_benchmark.have_begun({160: first, 320: waiting, 480: all_act}, 2))

    def test_the_newest_row_counts(self):
        all_act = _LEARNS | {"cluster/actor_00/agent_steps": 320.0}
        begun_again = _LEARNS | {"cluster/actor_00/agent_steps": 0.0}
        self.assertFalse(cluster_benchmark.have_begun({320: begun_again, 160: all_act}, 1))


if __name__ == "__main__":
    absltest.main()
