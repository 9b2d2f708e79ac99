"""Keyword arguments of environments: what a run's files can hold, and refusals."""

import json

from absl.testing import absltest, parameterized

from laser_tf.environments import gymnasium_suite
from testing import messages


class ArgumentsTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"levels": {1: "a"}}, "levels={1: 'a'}"),
        ({"size": (3, 4)}, "size=(3, 4)"),
        ({"colours": {1}}, "colours={1}"),
    )
    def test_a_dictionary_that_a_file_would_change_is_refused(self, arguments, named):
        # Evaluations and exports read it from there.
        with messages.raises(ValueError, "arguments", named):
            gymnasium_suite.GymnasiumConfig(arguments=arguments)

    def test_what_a_file_can_hold_is_taken(self):
        arguments = {"size": [3, 4], "level": "easy", "scale": 0.5}
        config = gymnasium_suite.GymnasiumConfig(arguments=arguments)
        self.assertEqual(config.keyword_arguments(), arguments)
        self.assertEqual(config.protocol()["arguments"], arguments)

    def test_texts_hold_whatever_python_can_and_an_evaluation_states_it(self):
        text = "size=(3, 4), colours={1, 2}, level=easy"
        config = gymnasium_suite.GymnasiumConfig(arguments=text)
        self.assertEqual(config.keyword_arguments()["colours"], {1, 2})
        stated = json.loads(json.dumps(config.protocol()))["arguments"]
        self.assertEqual(stated, {"size": "(3, 4)", "colours": "{1, 2}", "level": "easy"})


if __name__ == "__main__":
    absltest.main()
