"""Unrolls of an untrained agent, for benchmarks of replay."""

from collections.abc import Iterator

from laser_tf.environments import factory
from laser_tf.replay import stored_unroll, writers
from laser_tf.training import actor, assembly, run_config


def generate(
    config: run_config.RunConfig,
) -> tuple[stored_unroll.StoredUnroll, Iterator[list[stored_unroll.StoredUnroll]]]:
    """Returns the signature of unrolls, and successive unrolls of all environments.

    The next unrolls overwrite the arrays of the last ones.
    """
    environment = factory.make_environment(config.environment, seed=1)
    agent = assembly.build_agent(config, environment.spec(), "float32", seed=1)
    signature = assembly.unroll_signature(config, environment.spec(), agent)

    def unrolls() -> Iterator[list[stored_unroll.StoredUnroll]]:
        policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
        buffer = writers.UnrollBuffer(signature, environment.task_ids)
        env_output, first = environment.reset(), 0
        while True:
            for _ in range(first, buffer.last_step + 1):
                core_state = policy.core_state
                agent_output = policy(env_output)
                buffer.write(writers.Step(env_output, agent_output, core_state, 0))
                env_output = environment.step(agent_output.action)
            yield [buffer.take_unroll(index, 0) for index in range(environment.num_envs)]
            first = 1  # The last step of an unroll is the first step of the next one.

    return signature, unrolls()
