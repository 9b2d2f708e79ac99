"""Texts as numbers."""

import subprocess
import sys

import numpy as np
from absl.testing import absltest

from laser_tf import types
from laser_tf.environments import instructions
from testing import messages


class InstructionsTest(absltest.TestCase):
    def test_words_become_known_ids_and_zeros_follow(self):
        ids = instructions.encode("go to the Red ball", 7)
        self.assertEqual(ids.dtype, np.int32)
        # crc32 of "go", "to", "the", "red" and "ball", by zlib's own tables: these never change,
        # or checkpoints would mean other words.
        np.testing.assert_array_equal(ids, [775, 757, 79, 456, 380, 0, 0])

    def test_case_and_punctuation_make_no_difference(self):
        plain = instructions.encode("pick up a ball then go to the key", 10)
        np.testing.assert_array_equal(
            instructions.encode("Pick up a ball, then  go to the KEY.", 10), plain
        )

    def test_ids_fit_the_vocabulary_and_words_differ(self):
        words = [f"word{number}" for number in range(5000)]
        ids = instructions.encode(" ".join(words), 5000)
        self.assertEqual((ids.min(), ids.max()), (1, types.VOCABULARY_SIZE - 1))
        self.assertGreater(len(set(ids.tolist())), 950)

    def test_another_process_gives_the_same_ids(self):
        program = (
            "from laser_tf.environments import instructions as i;"
            "print(i.encode('open the grey door', 4).tolist())"
        )
        printed = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(
            printed.strip(), str(instructions.encode("open the grey door", 4).tolist())
        )

    def test_a_text_of_the_full_length_and_one_word_more(self):
        self.assertTrue(instructions.encode("go to the door", 4).all())
        with messages.raises(
            ValueError, "go to the red door", "5", "instruction_length", "4", "instruction_length=5"
        ) as context:
            instructions.encode("go to the red door", 4)
        self.assertNotIn("\n", str(context.exception))

    def test_no_text(self):
        np.testing.assert_array_equal(instructions.encode("", 3), [0, 0, 0])


if __name__ == "__main__":
    absltest.main()
