"""Two real replay servers: who is drawn from how often, who waits for whom, and whose run it is."""

import dataclasses
import pathlib
import tempfile
import threading
import time
from concurrent import futures
from unittest import mock

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import (
    connection,
    dataset,
    episode_writer,
    lease,
    replay_config,
    server,
    server_health,
    several_servers,
    standalone,
    stored_unroll,
    unroll_buffer,
    writer,
)
from laser_tf.training import batches, joint_batches, streams, unroll_accounting
from laser_tf.types import AgentOutput, EnvOutput
from testing import fakes, messages, replay_processes

T = 5
SPEC = fakes.image_spec((4, 3, 1), 3)
SIGNATURE = fakes.signature(SPEC, (), unroll_length=T, frame_stack=2)


def _never() -> bool:
    return False


def _config(**overrides) -> replay_config.ReplayConfig:
    defaults = {
        "unroll_length": T,
        "frame_stack": 2,
        "batch_size": 16,
        "replay_fraction": 0.75,
        "capacity": 1000,
        "queue_capacity": 100,
    }
    return replay_config.ReplayConfig(**(defaults | overrides))


def _unroll(number: int, actor: int) -> stored_unroll.StoredUnroll:
    unroll = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), SIGNATURE
    )
    return unroll._replace(
        learner_update=np.int64(number),
        new_steps=np.int64(T),
        actor=np.int64(actor),
        number=np.int64(number),
    )


def _drawable(replay: several_servers.ReplayServers) -> list[int]:
    return [served.num_sampleable for served in replay.servers]


class ServersTest(parameterized.TestCase):
    POLL_TIMEOUT = 30  # a server that a busy machine holds up is none that is silent

    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.object(connection, "POLL_TIMEOUT_SECONDS", self.POLL_TIMEOUT))
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._servers: list[server.ReplayServer] = []

    def _serve(
        self, config: replay_config.ReplayConfig, number: int = 2
    ) -> replay_config.ReplayConfig:
        """Starts servers; returns the configuration with their addresses."""
        for index in range(number):
            folder = self._folder / str(index)
            folder.mkdir(exist_ok=True)
            replay = standalone.start(config, SIGNATURE, folder, 0, [replay_config.ONLINE])
            self.addCleanup(replay.stop)
            self._servers.append(replay)
        addresses = ",".join(f"localhost:{replay.port}" for replay in self._servers)
        return dataclasses.replace(config, addresses=addresses)

    def _open(
        self, config: replay_config.ReplayConfig, run: str = "run"
    ) -> several_servers.ReplayServers:
        replay = several_servers.open_connection(config, SIGNATURE, run)
        self.addCleanup(replay.stop)
        return replay

    def _write(
        self,
        config: replay_config.ReplayConfig,
        actor: int,
        numbers: range,
        *,
        is_online: bool = True,
    ) -> None:
        replay = several_servers.open_for_writing(config, actor)
        tables = config.unroll_tables(replay.queue)
        target = writer.UnrollWriter(
            replay,
            tables if is_online else tables[:1],
            config.counting_tables(replay.queue) if is_online else (),
        )
        for number in numbers:
            target.write([_unroll(number, actor)], _never)
        target.wait(_never)
        target.close()

    def _wait_for(self, replay: several_servers.ReplayServers, items: list[int]) -> None:
        deadline = time.monotonic() + 60
        while _drawable(replay) != items:
            answering = [server.is_answering for server in replay.servers]
            self.assertLess(time.monotonic(), deadline, f"{_drawable(replay)}, {answering}")
            time.sleep(0.05)

    def _stream(self, config, replay):
        stream = streams.make_stream(config, replay, SIGNATURE, agent=mock.Mock(), seed=(1,))
        self.addCleanup(stream.close)
        return stream


class DrawTest(ServersTest):
    def setUp(self):
        super().setUp()
        # A server that a busy machine holds up is not passed over, which would move its share.
        self.enter_context(mock.patch.object(joint_batches, "_PATIENCE_SECONDS", 30))

    def test_online_unrolls_of_both_are_seen_once_and_replayed_ones_by_what_each_holds(self):
        config = self._serve(_config())
        self._write(config, 0, range(40))
        self._write(config, 1, range(100, 140))
        self._write(config, 1, range(140, 220), is_online=False)  # 40 there, 120 here
        replay = self._open(config)
        self.assertEqual(_drawable(replay), [40, 120])  # the first batch, too, is divided by it
        self.assertEqual(replay.size(), 160)
        self.assertEqual(replay.fill(), 0.4)
        stream = self._stream(config, replay)
        fetched = [stream.get(_never) for _ in range(20)]
        online = np.concatenate([b.unrolls.learner_update[b.is_online] for b in fetched])
        self.assertCountEqual(online.tolist(), [*range(40), *range(100, 140)])
        for batch in fetched:
            self.assertEqual(batch.is_online.tolist(), [True] * 4 + [False] * 12)
            self.assertEqual(batch.new_steps, 4 * T)
            self.assertEqual(batch.unrolls.env_output.observation.shape, (16, 7, 4, 3, 1))
            replayed = batch.unrolls.learner_update[~batch.is_online]
            np.testing.assert_array_equal(replayed >= 100, batch.server[~batch.is_online] == 1)
        # Exactly a quarter to a quarter: groups of 3 take turns.
        share = np.mean([b.server[~b.is_online] for b in fetched])
        self.assertAlmostEqual(share, 0.75, delta=0.02)

    def test_where_both_have_online_unrolls_they_take_turns(self):
        config = self._serve(_config(replay_fraction=0.0, queue_capacity=1000))
        stream = self._stream(config, self._open(config))

        def share() -> float:
            return np.mean(stream.get(_never).unrolls.learner_update >= 1000)

        # One begins before the other, and could give all that it has until then.
        for actor, first in enumerate((0, 1000)):
            self._write(config, actor, range(first, first + 16))
        self.assertEqual(np.mean([share() for _ in range(2)]), 0.5)  # both have begun
        for actor, first in enumerate((100, 1100)):
            self._write(config, actor, range(first, first + 800))
        self.assertBetween(np.mean([share() for _ in range(48)]), 0.3, 0.7)

    def test_an_idle_server_holds_up_nobody(self):
        config = self._serve(_config())
        self._write(config, 0, range(40))
        replay = self._open(config)
        self._wait_for(replay, [40, 0])
        stream = self._stream(config, replay)
        for _ in range(10):
            batch = stream.get(_never)
            self.assertFalse(batch.server.any())
        # The other one is drawn from as soon as it has something.
        self._write(config, 1, range(100, 140))
        self._wait_for(replay, [40, 40])
        fetched = [stream.get(_never) for _ in range(8)]
        self.assertTrue(any((b.unrolls.learner_update[b.is_online] >= 100).any() for b in fetched))
        self.assertTrue(any(b.server.any() for b in fetched))

    def test_online_batches_and_replayed_ones_take_turns(self):
        config = self._serve(
            _config(batch_size=8, replay_fraction=0.0, replay_ratio=2.0, priority_exponent=1.0)
        )
        for actor in range(2):
            self._write(config, actor, range(100 * actor, 100 * actor + 40))
        replay = self._open(config)
        self._wait_for(replay, [40, 40])
        stream = self._stream(config, replay)
        fetched, steps = [], 0
        while steps < 80 * T:
            fetched.append(stream.get(_never))
            steps += int(fetched[-1].new_steps)
        counts = np.random.default_rng((1,)).poisson(2.0, 9).tolist()
        kinds = [*(kind for count in counts for kind in (True, *[False] * count)), True]
        self.assertEqual([batch.is_online.all() for batch in fetched], kinds)
        self.assertEqual([batch.is_online.any() for batch in fetched], kinds)
        online = np.concatenate([b.unrolls.learner_update[b.is_online] for b in fetched])
        self.assertCountEqual(online.tolist(), [*range(40), *range(100, 140)])
        # Groups of 2 from each in turn; the compiled update takes both kinds of batch.
        self.assertEqual({b.server.mean() for b in fetched if not b.is_online.any()}, {0.5})
        described = [tree.map_structure(lambda x: (x.shape, x.dtype), batch) for batch in fetched]
        self.assertEqual(described, described[:1] * len(described))
        with mock.patch.object(connection.ReplayConnection, "update_priorities") as update:
            for batch in fetched:
                replay.take_priorities(batch, np.ones(8))
        self.assertEqual(update.call_count, 2 * kinds.count(False))

    def test_from_replay_alone_the_new_steps_of_both_count(self):
        config = self._serve(_config(steps_per_update=20 * T, warm_up=30 * T, capacity=1000))
        self._write(config, 0, range(20))
        replay = self._open(config)
        stream = self._stream(config, replay)
        self.assertIsNone(stream.poll(2.0))  # 20 of 30 unrolls
        self._write(config, 1, range(100, 120))
        self._wait_for(replay, [20, 20])
        self._write(config, 1, range(120, 140))
        batch = stream.poll(20)
        self.assertGreater(batch.new_steps, 20 * T)  # what one has written alone
        self.assertLessEqual(batch.new_steps, 60 * T)
        self.assertFalse(batch.is_online.any())


class OtherReplayTest(ServersTest):
    """Servers that were started with another configuration than the run's."""

    @parameterized.parameters((0.9, 0.6), (0.9, 0.0), (0.0, 0.6))
    def test_what_is_drawn_otherwise_is_refused(self, there, here):
        config = self._serve(_config(priority_exponent=there), number=1)
        with messages.raises(
            errors.ConfigError, config.addresses, f"replay.priority_exponent={there:g}", f"{here:g}"
        ):
            self._open(dataclasses.replace(config, priority_exponent=here))
        self._open(config)

    def test_one_that_takes_the_place_of_another_is_held_against_the_run_too(self):
        config = self._serve(_config(), number=1)
        replay = self._open(config)
        (served,) = replay.servers
        served.stop()
        self._serve(_config(priority_exponent=0.9), number=1)
        served._find = lambda: f"localhost:{self._servers[-1].port}"
        served._follow()
        with messages.raises(errors.ConfigError, "replay.priority_exponent", 0.9):
            served.poll()

    @parameterized.parameters(({},), ({"sequence_length": 2 * T, "sequence_overlap": T},))
    def test_a_capacity_below_the_warm_up_is_refused(self, sequences):
        config = self._serve(_config(steps_per_update=20 * T, capacity=40 * T, **sequences))
        enough = dataclasses.replace(config, capacity=200 * T, warm_up=80 * T)
        self._open(enough).stop()
        with messages.raises(
            errors.ConfigError, config.addresses, 405, "--config.replay.warm_up=400"
        ):
            self._open(dataclasses.replace(enough, warm_up=81 * T))

    def test_sequences_that_the_learner_keeps_are_not_the_servers_to_hold(self):
        own = {"sequence_length": 2 * T, "priorities": "contextual", "priority_exponent": 0.9}
        config = _config(steps_per_update=20 * T, warm_up=180 * T, queue_capacity=20, **own)
        self._open(self._serve(config, number=1))


class OtherServiceTest(ServersTest):
    def test_what_is_no_replay_server_is_refused_in_one_line(self):
        other = grpc.server(futures.ThreadPoolExecutor(1))
        self.addCleanup(other.stop, None)
        port = other.add_insecure_port("localhost:0")
        other.start()
        config = _config(addresses=f"localhost:{port}")
        with self.assertRaisesRegex(ValueError, f"localhost:{port} .*something else.: start it"):
            several_servers.open_connection(config, SIGNATURE, "a")


class EarlierRunTest(ServersTest):
    @parameterized.parameters((True, 38), (False, 19))
    def test_a_new_run_is_told_what_there_is_already(self, is_online, items):
        config = self._serve(_config())
        with self.assertNoLogs(level="WARNING"):
            several_servers.open_connection(config, SIGNATURE, "a", is_new=True).stop()
        for actor, unrolls in ((0, 12), (1, 7)):
            self._write(config, actor, range(unrolls), is_online=is_online)
        with self.assertLogs(level="WARNING") as logs:
            several_servers.open_connection(config, SIGNATURE, "b", is_new=True).stop()
        (line,) = logs.output
        self.assertRegex(line, f"replay at {config.addresses} holds {items} items of an earlier")
        self.assertIn("another --checkpoint_folder", line)
        with self.assertNoLogs(level="WARNING"):
            several_servers.open_connection(config, SIGNATURE, "b").stop()


class LookTest(ServersTest):
    def test_looking_again_and_again_makes_no_classes(self):
        # Decoding a signature makes some, and many stay: memory grew with every look.
        replay = self._open(self._serve(_config(priority_exponent=1.0)))
        health = server_health.Health(self._servers[0], replay_config.REPLAY, None)
        before = set(tuple.__subclasses__())
        for _ in range(3):
            for served in replay.servers:
                self.assertTrue(served.poll())
            health.line()
        self.assertEmpty(set(tuple.__subclasses__()) - before)


class RestartTest(ServersTest):
    """Of two servers in processes of their own one is killed."""

    POLL_TIMEOUT = connection.POLL_TIMEOUT_SECONDS

    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.object(unroll_accounting, "PATIENCE", 5))
        self.enter_context(mock.patch.object(lease, "HEARTBEAT_SECONDS", 0.2))
        self._config = _config(batch_size=4, replay_fraction=0.5, priority_exponent=1.0)
        self._seen: list[tuple[int, int]] = []  # actor and number of online unrolls, as they came
        self._steps = 0
        self._processes: list[replay_processes.ReplayProcess] = []
        self.addCleanup(lambda: [served.kill() for served in self._processes])  # clients go first

    def _start(self, index: int, port: int = 0) -> replay_processes.ReplayProcess:
        folder = self._folder / str(index) / "replay"
        folder.parent.mkdir(exist_ok=True)
        served = replay_processes.ReplayProcess(self._config, SIGNATURE, folder, port)
        self._processes.append(served)
        return served

    def _writer(self, config: replay_config.ReplayConfig, actor: int):
        replay = several_servers.open_for_writing(config, actor)
        replay.start_polling()
        self.addCleanup(replay.stop)
        target = writer.UnrollWriter(replay, config.unroll_tables(replay.queue))
        self.addCleanup(target.close)

        def write(numbers: range) -> None:
            for number in numbers:
                target.write([_unroll(number, actor)], _never)
            target.wait(_never)

        return write

    def _learn(self, replay, stream, until: tuple[int, int]) -> None:
        """Takes batches, and gives priorities back, until an actor's unroll has come."""
        end = time.monotonic() + 90
        while until not in self._seen:
            batch = stream.get(lambda: time.monotonic() > end)
            self.assertIsNotNone(batch, f"{until} has not come, but {self._seen}")
            replay.take_priorities(batch, np.ones(len(batch.key)))
            online = batch.unrolls
            self._seen.extend(
                zip(online.actor[:2].tolist(), online.number[:2].tolist(), strict=True)
            )
            self._steps += int(batch.new_steps)

    @pytest.mark.long
    def test_the_other_is_learned_from_meanwhile_and_no_unroll_is_lost_or_learned_twice(self):
        served = [self._start(index) for index in range(2)]
        addresses = ",".join(one.address for one in served)
        config = dataclasses.replace(self._config, addresses=addresses)
        replay = self._open(config)
        write = [self._writer(config, actor) for actor in range(2)]
        for actor in range(2):
            write[actor](range(10))
        served[1].checkpoint()  # with all of the actor's unrolls still in the queue
        stream = self._stream(config, replay)
        for actor in range(2):
            self._learn(replay, stream, until=(actor, 9))
        with self.assertLogs(level="WARNING") as logs:
            served[1].kill()
            replay_processes.wait_until(lambda: replay.servers[1].num_sampleable == 0)
            write[0](range(10, 40))
            self._learn(replay, stream, until=(0, 35))
            self._start(1, served[1].port)
            write[1](range(10, 30))
            write[0](range(40, 60))
            self._learn(replay, stream, until=(1, 29))
        told = "\n".join(logs.output)
        messages.assert_names(told, served[1].address)
        self.assertEqual((stream.accounting.lost, stream.accounting.doubled), (0, 10))
        self.assertEqual(self._steps, T * len(set(self._seen)))
        self.assertGreater(replay.servers[1].num_sampleable, 10)

        def beats() -> int:
            info = replay.servers[1].client.server_info(timeout=10)[lease.table_name(replay.queue)]
            return info.rate_limiter_info.insert_stats.completed

        before = beats()
        replay_processes.wait_until(lambda: beats() > before)  # the run claims it still


class PrioritiesTest(ServersTest):
    def test_they_go_back_to_the_server_an_item_came_from(self):
        config = self._serve(
            _config(batch_size=8, replay_fraction=0.75, priority_exponent=1.0, queue_capacity=100)
        )
        # On a busy machine one server may serve several batches before the other one begins.
        for actor in range(2):
            self._write(config, actor, range(100 * actor, 100 * actor + 50))
        replay = self._open(config)
        self._wait_for(replay, [50, 50])
        stream = self._stream(config, replay)
        sent = [[], []]
        deadline = time.monotonic() + 60
        update = connection.ReplayConnection.update_priorities

        def record(self_, keys, priorities):
            sent[config.servers.index(self_.address)].append((keys, priorities))
            update(self_, keys, priorities)

        with mock.patch.object(connection.ReplayConnection, "update_priorities", record):
            while not all(len(of_server) > 1 for of_server in sent):
                batch = stream.get(lambda: time.monotonic() > deadline)
                self.assertIsNotNone(batch)
                self.assertEqual(batch.importance_weight[~batch.is_online].max(), 1)
                replay.take_priorities(batch, 7.0 + batch.unrolls.learner_update.astype(float))
        for index in range(2):
            keys = np.concatenate([keys for keys, _ in sent[index]])
            table = dataset.replayed_entries(config.servers[index], config, 3_000)
            drawn = next(iter(table))
            known = dict(zip(drawn.key.numpy(), drawn.unrolls.learner_update.numpy(), strict=True))
            self.assertContainsSubset(keys.tolist(), known)
            for key, priority in zip(
                keys, np.concatenate([values for _, values in sent[index]]), strict=True
            ):
                self.assertEqual(priority, 7 + known[key])

    def test_weights_are_those_of_one_table_with_all_items(self):
        config = self._serve(
            _config(
                batch_size=400, replay_fraction=0.99, capacity=2000, priority_exponent=1.0,
                importance_exponent=1.0, queue_capacity=200,
            )
        )  # fmt: skip
        sizes = {0: 5, 1: 20}
        for actor, size in sizes.items():
            self._write(config, actor, range(100 * actor, 100 * actor + size), is_online=False)
            self._write(config, actor, range(900, 908))
        replay = self._open(config)
        self._wait_for(replay, [13, 28])
        stream = self._stream(config, replay)
        batch = stream.get(_never)
        # All priorities are 1: every item is as likely, and weighs as much, as any other.
        np.testing.assert_allclose(batch.importance_weight, 1.0, rtol=1e-5)
        share = np.mean(batch.server[~batch.is_online])
        self.assertAlmostEqual(share, 28 / 41, delta=0.26)


class SharedStreamTest(parameterized.TestCase):
    def _stream(self, held):
        fetches = [lambda: 0, lambda: 1, lambda: 2]
        stream = joint_batches.SharedStream([batches.BatchStream(f) for f in fetches], held)
        self.addCleanup(stream.close)
        return stream

    @parameterized.parameters(((1, 1, 1),), ((5, 3, 2),), ((0, 1, 9),), ((7, 0, 0),))
    def test_each_server_gives_its_share(self, held):
        stream = self._stream(lambda: held)
        drawn = [stream.get(_never) for _ in range(100)]
        for index in range(3):
            self.assertAlmostEqual(drawn.count(index), 100 * held[index] / sum(held), delta=1.01)
        self.assertEqual(stream.server, drawn[-1])

    def test_nothing_comes_while_nobody_holds_anything(self):
        held = [0, 0, 0]
        stream = self._stream(lambda: held)
        self.assertIsNone(stream.poll(0))
        held[1] = 1
        self.assertEqual(stream.get(_never), 1)

    def test_a_server_that_comes_back_is_owed_nothing(self):
        held = [1, 1, 0]
        stream = self._stream(lambda: held)
        for _ in range(50):
            stream.get(_never)
        held[2] = 1
        drawn = [stream.get(_never) for _ in range(30)]
        self.assertAlmostEqual(drawn.count(2), 10, delta=1.01)

    @parameterized.parameters((32, 2, 16), (32, 3, 8), (2, 4, 1), (7, 2, 1), (24, 4, 6), (1, 1, 1))
    def test_groups_divide_a_batch(self, entries, groups, size):
        self.assertEqual(joint_batches.group_size(entries, groups), size)


class EpisodesTest(ServersTest):
    def test_episodes_of_both_are_drawn_by_how_many_each_holds(self):
        config = self._serve(
            _config(batch_size=4, replay_fraction=0.5, core_state="recomputed", capacity=1000)
        )
        # An episode counts once, however long: three of one unroll there, one of three here.
        for actor, lengths in ((0, (T, T, T)), (1, (3 * T,))):
            self._play(config, actor, lengths)
        replay = self._open(config)
        self._wait_for(replay, [3, 1])
        self.assertEqual(replay.size(), 6)
        stream = streams._SeveralServers(config, replay).episodes()
        self.addCleanup(stream.close)
        # A server that is slow to begin is not waited for, but gives what it owes later.
        begun = [one._batches for one in stream._streams]
        replay_processes.wait_until(lambda: all(elements.full() for elements in begun))
        lengths = [len(stream.get(_never).env_output.reward) for _ in range(40)]
        self.assertAlmostEqual(lengths.count(3), 10, delta=2.01)
        self.assertEqual(set(lengths), {1, 3})

    def _play(self, config, actor, lengths):
        replay = several_servers.open_for_writing(config, actor)
        buffer = unroll_buffer.UnrollBuffer(
            SIGNATURE._replace(core_state=()), np.zeros(1, np.int32)
        )
        recorder = episode_writer.EpisodeWriter(replay, buffer, 10)
        for length in (*lengths, 1):
            for step in range(length + (length > 1)):
                recorder.add(
                    EnvOutput(
                        observation=np.zeros((1, 4, 3, 1), np.uint8),
                        reward=np.zeros(1, np.float32),
                        discount=np.ones(1, np.float32),
                        is_first=np.array([step == 0]),
                        previous_action=np.zeros(1, np.int32),
                    ),
                    AgentOutput(np.zeros(1, np.int32), np.zeros((1, 3), np.float32)),
                    (),
                    0,
                    _never,
                )
        recorder.wait(_never)
        recorder.close()


class ClaimTest(ServersTest):
    def setUp(self):
        super().setUp()
        self.enter_context(mock.patch.object(lease, "HEARTBEAT_SECONDS", 0.2))
        self.enter_context(mock.patch.object(lease, "STALE_SECONDS", 3.0))

    def test_a_second_run_is_refused_while_the_first_lives(self):
        config = self._serve(_config(), number=1)
        first = self._open(config, "host:/runs/a")
        before = set(threading.enumerate())
        with messages.raises(lease.LeaseTakenError, config.addresses, "host:/runs/a"):
            several_servers.open_connection(config, SIGNATURE, "host:/runs/b")
        begun = [thread.name for thread in set(threading.enumerate()) - before]
        self.assertNotIn("replay poll", begun)  # it would look at the server without end
        self.assertEqual(first.size(), 0)  # it has noticed nothing
        first.stop()
        self._open(config, "host:/runs/b")

    def test_a_run_that_ends_while_another_begins_is_followed_at_once(self):
        config = self._serve(_config(), number=1)
        self.enter_context(mock.patch.object(lease, "HEARTBEAT_SECONDS", 2.0))
        self.enter_context(mock.patch.object(lease, "STALE_SECONDS", 60.0))
        ending = lease.Lease(several_servers.open_for_writing(config, 0), "ending")
        ending.acquire()
        timer = threading.Timer(1.0, ending.release)
        timer.start()
        self.addCleanup(timer.join)
        start = time.monotonic()
        self._open(config, "next")
        self.assertLess(time.monotonic() - start, 30)

    def test_what_a_refused_run_had_claimed_is_free_again(self):
        self.enter_context(mock.patch.object(lease, "STALE_SECONDS", 60.0))
        config = self._serve(_config())
        addresses = config.servers
        second = dataclasses.replace(config, addresses=addresses[1])
        self._open(second, "a")
        with self.assertRaises(lease.LeaseTakenError):
            several_servers.open_connection(config, SIGNATURE, "b")
        start = time.monotonic()
        self._open(dataclasses.replace(config, addresses=addresses[0]), "c")
        self.assertLess(time.monotonic() - start, 30)

    def test_a_dead_run_is_followed_by_another(self):
        config = self._serve(_config(), number=1)
        lease.Lease(several_servers.open_for_writing(config, 0), "dead").acquire()
        self._open(config, "next")

    @parameterized.parameters("run", "host:/" + 300 * "x", "h:" + 299 * "ä")
    def test_a_run_that_goes_on_need_not_wait(self, run):
        self.enter_context(mock.patch.object(lease, "STALE_SECONDS", 60))
        config = self._serve(_config(), number=1)
        lease.Lease(several_servers.open_for_writing(config, 0), run).acquire()
        start = time.monotonic()
        self._open(config, run).stop()
        self._open(config, "other")  # what it held is given back, too
        self.assertLess(time.monotonic() - start, 30)

    def test_long_names_of_two_hosts_are_those_of_two_runs(self):
        config = self._serve(_config(), number=1)
        self._open(config, "a:/" + 300 * "x")
        with self.assertRaisesRegex(lease.LeaseTakenError, r"another run \(a:/x+\.\.\.x+\)"):
            several_servers.open_connection(config, SIGNATURE, "b:/" + 300 * "x")

    def test_a_run_that_was_overtaken_ends(self):
        config = self._serve(_config(), number=1)
        replay = self._open(config, "slow")
        other = lease.Lease(several_servers.open_for_writing(config, 0), "other", stale_seconds=0.0)
        deadline = time.monotonic() + 20
        with messages.raises(lease.LeaseTakenError, "other"):
            while time.monotonic() < deadline:
                other.renew()
                replay.servers[0].raise_if_rejected()
                time.sleep(0.05)

    def test_a_server_of_a_run_is_no_server_for_others(self):
        embedded = server.ReplayServer(_config(), SIGNATURE, self._folder / "replay")
        self.addCleanup(embedded.stop)
        config = _config(addresses=f"localhost:{embedded.port}")
        with messages.raises(errors.ConfigError, "launch.replay_server"):
            several_servers.open_connection(config, SIGNATURE, "run")

    def test_a_silent_server_is_named(self):
        config = _config(addresses="localhost:1")
        with (
            mock.patch.object(connection, "TIMEOUT_SECONDS", 1),
            self.assertRaisesRegex(ValueError, "no replay server answers at localhost:1 "),
        ):
            several_servers.open_connection(config, SIGNATURE, "run")

    def test_other_unrolls_are_refused_with_the_address(self):
        config = self._serve(_config(), number=1)
        other = fakes.signature(SPEC, (), unroll_length=T + 1, frame_stack=2)
        with messages.raises(errors.ConfigError, config.addresses):
            several_servers.open_connection(config, other, "run")


if __name__ == "__main__":
    absltest.main()
