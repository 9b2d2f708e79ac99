"""Whole episodes: written once, drawn uniformly, removed by age, replayed with exact states."""

import itertools
from collections.abc import Iterator
from unittest import mock

import numpy as np
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized

from laser_tf import observations, types
from laser_tf.agents import base, laser, laser_config
from laser_tf.replay import connection, dataset, episode_replay, server, stored_unroll, writers
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import episodes
from testing import fakes, folders

T, K, A, SIZE = 5, 2, 3, 4
SPEC = fakes.image_spec((4, 3, 1), A)
STATE = tree.map_structure(lambda _: tf.zeros([1, SIZE]), (0, 0))
SIGNATURE = fakes.signature(SPEC, STATE, unroll_length=T, frame_stack=K)
ONE = tree.map_structure(lambda leaf: leaf[None], stored_unroll.blank(SIGNATURE))


def _steps(lengths: list[list[int]], seed: int = 0):
    """Returns steps of environments whose episodes have given numbers of transitions.

    An endless episode follows the given episodes. Rewards number the steps: episode 2 of
    environment 1 begins at 10,200. All episodes are over with the last step.
    """
    generator = np.random.default_rng(seed)
    environments = [
        [
            (10_000 * environment + 100 * episode + step, step)
            for episode, length in enumerate(episodes)
            for step in range(length + 1)
        ]
        for environment, episodes in enumerate(lengths)
    ]
    for time in range(max(map(len, environments)) + 1):
        cells = [
            environment[time] if time < len(environment) else (-1, time - len(environment))
            for environment in environments
        ]
        names, steps = np.array(cells).T
        yield types.EnvOutput(
            observation=generator.integers(0, 256, (len(environments), 4, 3, 1)).astype(np.uint8),
            reward=names.astype(np.float32),
            discount=np.ones(len(environments), np.float32),
            is_first=steps == 0,
            previous_action=generator.integers(0, A, len(environments)).astype(np.int32),
        )


def _answer(number: int, time: int) -> types.AgentOutput:
    return types.AgentOutput(
        np.full(number, time % A, np.int32), np.full((number, A), time, np.float32)
    )


class _ReplayTestCase(folders.FolderTest):
    def _write(self, lengths: list[list[int]], capacity: int = 1000) -> connection.ReplayConnection:
        """Starts a server and writes the episodes of several environments to it."""
        config = episodes.Episodes(unroll_length=T, frame_stack=K, batch_size=4, capacity=capacity)
        self._server = server.ReplayServer(config, SIGNATURE, self._folder / "replay")
        self.addCleanup(self._server.stop)
        replay = self._server.connect()
        tasks = np.arange(len(lengths), dtype=np.int32)
        context = schemes_base.ActorContext(
            replay, SIGNATURE, mock.Mock(), tasks, max_unrolls_per_episode=8
        )
        target = episode_replay.EpisodeWriter(config, context)
        for time, step in enumerate(_steps(lengths)):
            target.add(writers.Step(step, _answer(len(lengths), time), (), time), fakes.never)
        return replay

    def _draw(
        self, replay: connection.ReplayConnection | server.ReplayServer, number: int
    ) -> list[stored_unroll.StoredUnroll]:
        drawn = dataset.items(replay.address, "episodes", in_flight=2).take(number)
        return [tree.map_structure(lambda x: x.numpy(), episode) for episode in drawn]


class EpisodesTest(_ReplayTestCase):
    @parameterized.parameters(1, T, T + 1, 8 * T)
    def test_each_transition_is_stored_once(self, length):
        replay = self._write([[3, length, 2]])
        numbers = range(100, 100 + length + 1)
        episode = next(e for e in self._draw(replay, 200) if e.env_output.reward[0, 0] == 100)
        self.assertLen(episode.env_output.reward, -(-length // T))
        transitions = [
            (before, after)
            for unroll in range(len(episode.env_output.reward))
            for before, after, masked in zip(
                episode.env_output.reward[unroll, :-1],
                episode.env_output.reward[unroll, 1:],
                episode.env_output.is_first[unroll, K:],
                strict=True,
            )
            if not masked
        ]
        self.assertEqual(transitions, list(itertools.pairwise(numbers)))
        self.assertTrue(episode.env_output.is_first[0, K - 1])

    def test_columns_belong_to_their_environment(self):
        replay = self._write([[3, 9], [12], [7, 4]])
        for episode in self._draw(replay, 60):
            environment = int(episode.env_output.reward[0, 0] // 10_000)
            np.testing.assert_array_equal(episode.task, environment)
            first = {0: 0, 100: 4, 10_000: 0, 20_000: 0, 20_100: 8}[
                int(episode.env_output.reward[0, 0])
            ]
            for unroll in range(len(episode.env_output.reward)):
                time = first + unroll * T + np.arange(T + 1)
                steps = ~episode.env_output.is_first[unroll, K - 1 :] | (
                    np.arange(T + 1) + unroll == 0
                )
                np.testing.assert_array_equal(
                    episode.agent_output.action[unroll][steps], time[steps] % A
                )
                np.testing.assert_array_equal(
                    episode.agent_output.policy[unroll][steps, 0], time[steps]
                )

    def test_frame_history_reaches_over_unrolls(self):
        replay = self._write([[2 * T]])
        episode = self._draw(replay, 1)[0]
        frames = np.stack([step.observation[0] for step in _steps([[2 * T]])])
        np.testing.assert_array_equal(episode.env_output.observation[0, K - 1 :], frames[: T + 1])
        np.testing.assert_array_equal(
            episode.env_output.observation[1], frames[T - K + 1 : 2 * T + 1]
        )

    def test_episodes_of_any_length_are_sampled_uniformly(self):
        replay = self._write([[1, 4 * T, 2, T]])
        counts = {0: 0, 100: 0, 200: 0, 300: 0}
        for episode in self._draw(replay, 2000):
            self.assertLen(
                episode.env_output.reward,
                {0: 1, 100: 4, 200: 1, 300: 1}[int(episode.env_output.reward[0, 0])],
            )
            counts[int(episode.env_output.reward[0, 0])] += 1
        # Binomial of 2000 and 1/4: five standard deviations are 97.
        self.assertTrue(all(abs(count - 500) < 97 for count in counts.values()), counts)

    def test_full_replay_removes_the_oldest_episodes(self):
        replay = self._write([[2 * T, 3 * T, T, 2 * T, 2 * T]], capacity=6 * T)
        self.assertEqual(replay.size(), 6)
        kept = {int(episode.env_output.reward[0, 0]) for episode in self._draw(replay, 300)}
        self.assertEqual(kept, {200, 300, 400})


def _agent(core: str) -> laser.Laser:
    config = laser_config.LaserConfig(torso="flat", core=core, core_size=SIZE)
    seen = SPEC._replace(observation=observations.stack_specs(SPEC.observation, K))
    agent = laser.Laser(config, base.AgentContext(seen, frame_stack=K))
    generator = np.random.default_rng(3)
    for variable in agent.trainable_variables:
        variable.assign(generator.normal(size=variable.shape) / np.sqrt(variable.shape[0]))
    return agent


class ReplayerTest(_ReplayTestCase):
    @parameterized.parameters("lstm", "preco_lstm")
    def test_recomputed_states_equal_acting_step_by_step(self, core):
        agent = _agent(core)
        length = 3 * T + 2
        replay = self._write([[length, 4, length]])

        def next_state(stored):
            stored = tree.map_structure(tf.constant, stored)
            batch = stored_unroll.unweighted(stored, np.zeros(2, bool))
            unroll = stored_unroll.unpack(batch)
            steps = tree.map_structure(lambda column: column[:-1], unroll.env_output)
            return tree.map_structure(
                lambda state: state.numpy(), agent.next_state(steps, unroll.core_state)
            )

        states = self._stepped_states(agent, [length, 4, length])
        drawn = dataset.items(replay.address, "episodes").as_numpy_iterator()
        source = episode_replay.Replayer(2, SIGNATURE, next_state, lambda: next(drawn))
        compared = 0
        for _ in range(30):
            batch = source.next_batch()
            for step in range(2):
                if not batch.env_output.is_first[
                    step, K - 1
                ]:  # a first step resets whatever the state is
                    expected = states[int(batch.env_output.reward[step, 0])]
                    for part, value in zip(batch.core_state, expected, strict=True):
                        np.testing.assert_allclose(part[step], value[0], atol=1e-5)
                    compared += 1
        self.assertGreater(compared, 10)

    def _stepped_states(self, agent, lengths: list[int]) -> dict[int, list[np.ndarray]]:
        """Step's number -> the core state before it, by acting through the steps one by one."""
        states, core_state = {}, agent.initial_state(1)
        previous = np.zeros((1, 4, 3, 1), np.uint8)
        for step in _steps([lengths]):
            states[int(step.reward[0])] = [part.numpy() for part in core_state]
            previous = np.where(step.is_first[0], 0, previous).astype(np.uint8)
            stacked = np.concatenate([previous, step.observation], axis=-1)
            _, core_state = agent.act(step._replace(observation=stacked), core_state)
            previous = step.observation
        return states

    def test_entry_without_an_episode_has_no_transitions(self):
        source = episode_replay.Replayer(
            2, SIGNATURE, lambda stored: stored.core_state, lambda: None
        )
        batch = source.next_batch()
        self.assertTrue(batch.env_output.is_first.all())
        self.assertEqual(batch.env_output.observation.shape, (2, T + K, 4, 3, 1))
        self.assertEqual([part.shape for part in batch.core_state], [(2, SIZE)] * 2)

    def _mix(self, sampled: mock.Mock) -> Iterator[stored_unroll.Batch]:
        """Mixes blank online unrolls with episodes that `sampled.poll` returns."""
        config = episodes.Episodes(
            unroll_length=T, frame_stack=K, batch_size=2, replay_fraction=0.5
        )
        online = itertools.repeat(stored_unroll.unweighted(ONE, np.array([True]), T))
        return episode_replay.mix(
            config, fakes.learner_context(SIGNATURE), online, sampled,
            lambda unrolls: unrolls.core_state,
        )  # fmt: skip

    def test_empty_replay_does_not_block_the_learner(self):
        episode = ONE._replace(core_state=())
        # At once until there is an episode, and from when there is none again.
        some = episode_replay.EPISODE_TIMEOUT_SECONDS
        polls = [
            (0, None), (0, episode), (some, episode), (some, None), (0, None), (0, episode),
            (some, None), (0, None),
        ]  # fmt: skip
        sampled = mock.Mock()
        sampled.poll.side_effect = [found for _, found in polls]
        for batch in itertools.islice(self._mix(sampled), len(polls)):
            self.assertEqual(batch.is_online.tolist(), [True, False])
        waited = [call.args[0] for call in sampled.poll.call_args_list]
        self.assertEqual(waited, [seconds for seconds, _ in polls])
        self.assertGreater(some, 0)

    def test_placeholder_is_not_replayed_as_an_episode(self):
        middle = ONE.env_output._replace(is_first=np.zeros_like(ONE.env_output.is_first))
        sampled = mock.Mock()
        sampled.poll.return_value = ONE._replace(env_output=middle, core_state=())
        self.assertTrue(next(self._mix(sampled)).unrolls.env_output.is_first[1].all())


if __name__ == "__main__":
    absltest.main()
