import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import pixel_control
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, H, W, C, A, CELL = 6, 5, 6, 4, 3, 4, 2
GAMMA = 0.9


def _observations(height=H, width=W, channels=C, seed=0):
    shape = [T + 1, B, height, width, channels]
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def _inputs(seed=0):
    """Returns inputs with resets at the first, a middle, the last and no step, and a mask."""
    rng = np.random.default_rng(seed)
    grid = [H // CELL, W // CELL]
    is_transition, mask = np.ones([T, B], bool), rng.uniform(size=[T, B]) > 0.3
    is_transition[0, 0] = is_transition[2, 1] = is_transition[-1, 2] = False
    is_transition[[1, 4], 3] = False
    mask[1, 1] = True
    return {
        "q": rng.normal(size=[T + 1, B, *grid, A]).astype(np.float32),
        "actions": rng.integers(A, size=[T, B]).astype(np.int32),
        "rewards": rng.uniform(size=[T, B, *grid]).astype(np.float32),
        "is_transition": is_transition,
        "mask": mask,
    }


def _loss_and_gradients(inputs, discount=GAMMA):
    """Returns the loss and its gradients with respect to `q` and `rewards`."""
    arguments = {name: tf.convert_to_tensor(x) for name, x in inputs.items()}
    with tf.GradientTape() as tape:
        watched = [arguments["q"], arguments["rewards"]]
        tape.watch(watched)
        loss = pixel_control.pixel_control_loss(**arguments, discount=discount)
    return loss, *tape.gradient(loss, watched)


class PixelRewardsTest(parameterized.TestCase):
    @parameterized.parameters(
        (6, 4, 3, 2), (6, 4, 1, 1), (7, 5, 2, 2), (7, 9, 1, 3), (8, 8, 2, 5), (11, 9, 1, 4)
    )
    def test_rewards_match_the_naive_loop(self, height, width, channels, cell):
        observations = _observations(height, width, channels)
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell)
        self.assertEqual(rewards.dtype, tf.float32)
        self.assertEqual(rewards.shape, [T, B, height // cell, width // cell])
        np.testing.assert_allclose(
            rewards, numpy_reference.pixel_rewards(observations, cell), rtol=1e-4, atol=1e-6
        )

    def test_rewards_match_rlax(self):
        observations = _observations()
        np.testing.assert_allclose(
            pixel_control.pixel_rewards(tf.constant(observations), CELL),
            rlax_oracle.pixel_rewards(observations / 255, CELL),
            rtol=1e-4,
        )

    def test_black_to_white_and_back_has_reward_one(self):
        # With uint8, 0 - 255 would wrap around to 1.
        observations = np.zeros([3, 1, 2, 2, 1], np.uint8)
        observations[1] = 255
        rewards = pixel_control.pixel_rewards(tf.constant(observations), 2)
        np.testing.assert_allclose(rewards, np.ones([2, 1, 1, 1]), rtol=1e-6)

    @parameterized.parameters((84, 5, 2), (11, 4, 1))
    def test_only_the_border_is_cropped(self, size, cell, margin):
        observations = np.zeros([2, 1, size, size, 1], np.uint8)
        observations[1, :, :margin] = observations[1, :, :, :margin] = 255
        end = margin + size // cell * cell
        observations[1, :, end:] = observations[1, :, :, end:] = 255
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell)
        np.testing.assert_array_equal(rewards, np.zeros_like(rewards))
        observations[1, 0, margin, margin] = observations[1, 0, end - 1, end - 1] = 255
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell).numpy()[0, 0]
        self.assertGreater(rewards[0, 0], 0.0)
        self.assertGreater(rewards[-1, -1], 0.0)
        self.assertEqual(np.count_nonzero(rewards), 2)

    def test_xla_agrees_with_eager(self):
        observations = tf.constant(_observations(7, 5))
        compiled = tf.function(pixel_control.pixel_rewards, jit_compile=True)
        np.testing.assert_allclose(
            compiled(observations, CELL),
            pixel_control.pixel_rewards(observations, CELL),
            rtol=1e-5,
        )


class PixelControlLossTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 0.9, 1.0)
    def test_loss_and_gradient_match_the_naive_loop(self, discount):
        inputs = _inputs()
        loss, gradient, _ = _loss_and_gradients(inputs, discount)
        expected_loss, expected_gradient = numpy_reference.pixel_control_loss(
            **inputs, discount=discount
        )
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-5)

    def test_default_discount_is_0_9_as_in_the_paper(self):
        inputs = _inputs()
        np.testing.assert_array_equal(
            pixel_control.pixel_control_loss(**inputs), _loss_and_gradients(inputs, 0.9)[0]
        )

    def test_loss_matches_rlax_with_discount_0_before_resets(self):
        inputs, observations = _inputs(), _observations()
        inputs["rewards"] = pixel_control.pixel_rewards(tf.constant(observations), CELL).numpy()
        discounts = np.full([T, B], GAMMA, np.float32)
        discounts[:-1][~inputs["is_transition"][1:]] = 0.0
        errors = rlax_oracle.pixel_control_errors(
            observations / 255, inputs["actions"], inputs["q"], discounts, CELL
        )
        has_loss = inputs["is_transition"] & inputs["mask"]
        loss = _loss_and_gradients(inputs)[0]
        np.testing.assert_allclose(loss, errors[has_loss].sum(), rtol=1e-4)

    def test_targets_end_at_a_reset(self):
        # x_2 ends an episode, x_3 starts the next. There is one cell with two actions.
        q = np.arange(10, dtype=np.float32).reshape([5, 1, 1, 1, 2])
        loss = pixel_control.pixel_control_loss(
            q=tf.constant(q),
            actions=tf.constant([[0], [1], [0], [1]]),
            rewards=tf.constant([1.0, 2.0, np.nan, 3.0], shape=[4, 1, 1, 1]),
            is_transition=tf.constant([[True], [True], [False], [True]]),
            mask=tf.ones([4, 1], tf.bool),
            discount=0.5,
        )
        targets = [1.0 + 0.5 * 2.0, 2.0, None, 3.0 + 0.5 * 9.0]
        errors = (targets[0] - 0.0, targets[1] - 3.0, targets[3] - 7.0)
        np.testing.assert_allclose(loss, 0.5 * sum(error**2 for error in errors), rtol=1e-6)

    def test_steps_after_a_reset_do_not_affect_earlier_steps(self):
        inputs = _inputs()
        inputs["is_transition"][3] = False
        inputs["mask"][4:] = False
        before = _loss_and_gradients(inputs)[0]
        inputs["rewards"][3:], inputs["q"][3:] = 7.0, 7.0
        np.testing.assert_array_equal(_loss_and_gradients(inputs)[0], before)

    def test_only_q_of_actions_taken_receives_a_gradient(self):
        inputs = _inputs()
        inputs["q"][-1] += 5.0  # so that no error is zero by chance
        _, gradient, rewards_gradient = _loss_and_gradients(inputs)
        self.assertIsNone(rewards_gradient)
        taken = np.eye(A, dtype=bool)[inputs["actions"]]  # [T, B, A]
        taken &= (inputs["is_transition"] & inputs["mask"])[..., None]
        taken = np.concatenate([taken, np.zeros([1, B, A], bool)])[:, :, None, None]
        np.testing.assert_array_equal(
            gradient.numpy() != 0.0, np.broadcast_to(taken, gradient.shape)
        )

    @parameterized.parameters(np.nan, np.inf)
    def test_masked_values_are_not_read(self, poison):
        inputs = _inputs()
        clean_loss, clean_gradient, _ = _loss_and_gradients(inputs)
        has_loss = inputs["is_transition"] & inputs["mask"]
        inputs["rewards"][~inputs["is_transition"]] = poison
        inputs["q"][:-1][~has_loss] = poison
        # Other actions of steps with a loss, and bootstrap values that no return reaches.
        for t, b in zip(*np.nonzero(has_loss), strict=True):
            inputs["q"][t, b][..., np.arange(A) != inputs["actions"][t, b]] = poison
        inputs["q"][-1][~inputs["is_transition"][-1]] = poison
        loss, gradient, _ = _loss_and_gradients(inputs)
        np.testing.assert_array_equal(loss, clean_loss)
        np.testing.assert_array_equal(gradient, clean_gradient)

    def test_reward_of_a_masked_step_reaches_earlier_targets(self):
        inputs = _inputs()
        inputs["is_transition"][:], inputs["mask"][:] = True, True
        inputs["mask"][1:] = False
        before = _loss_and_gradients(inputs)[0]
        inputs["rewards"][1] += 1.0
        self.assertNotEqual(_loss_and_gradients(inputs)[0], before)

    def test_loss_is_a_sum_over_time_batch_and_cells(self):
        inputs = _inputs()
        once = _loss_and_gradients(inputs)[0]
        for axes in (dict.fromkeys(inputs, 1), {"q": 2, "rewards": 2}, {"q": 3, "rewards": 3}):
            doubled = {
                name: np.concatenate([x, x], axes[name]) if name in axes else x
                for name, x in inputs.items()
            }
            np.testing.assert_allclose(_loss_and_gradients(doubled)[0], 2 * once, rtol=1e-5)
        # Two unrolls in sequence, separated by a reset, also have twice the loss.
        inputs["is_transition"][-1] = False
        once = _loss_and_gradients(inputs)[0]
        doubled = {
            name: np.concatenate([x[:T], x]) if name == "q" else np.concatenate([x, x])
            for name, x in inputs.items()
        }
        np.testing.assert_allclose(_loss_and_gradients(doubled)[0], 2 * once, rtol=1e-5)

    def test_xla_agrees_with_eager(self):
        inputs = _inputs()
        inputs["rewards"][~inputs["is_transition"]] = np.nan
        compiled = tf.function(_loss_and_gradients, jit_compile=True)(inputs)
        for actual, expected in zip(compiled[:2], _loss_and_gradients(inputs)[:2], strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    absltest.main()
