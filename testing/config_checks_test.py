"""Tests of the checks of configuration values."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Optional

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf import config_checks, errors
from testing import messages


def _check(annotation: Any, value: Any) -> Any:
    config = dataclasses.make_dataclass("Config", [("key", annotation)])(value)
    config_checks.check_types(config)
    return config.key


class CheckTypesTest(parameterized.TestCase):
    @parameterized.parameters(
        (tuple, (1,)),
        (tuple[int, str], (1, "a")),
        (tuple[()], ()),
        (list[int], [1]),
        (dict, {}),
        (Optional[float], 1.0),  # noqa: UP045
        (float | None, None),
        (Literal["a", "b"], "a"),
        (Any, 1),
    )
    def test_unsupported_annotation_is_rejected(self, annotation, value):
        with messages.raises(errors.ConfigError, "key", annotation, "tuple[TYPE, ...]"):
            _check(annotation, value)

    @parameterized.parameters(
        (int, 1e5, 100_000),
        (float, 1, 1.0),
        (int, np.int64(1), 1),
        (float, np.float32(1.5), 1.5),
        (float, np.int32(2), 2.0),
        (bool, np.bool_(True), True),
        (tuple[bool, ...], [True], (True,)),
        (tuple[float, ...], (1, np.float32(0.5)), (1.0, 0.5)),
        (bool | str, "auto", "auto"),
        (str | Mapping[str, Any], {"a": 1}, {"a": 1}),
    )
    def test_supported_value_is_returned(self, annotation, value, expected):
        checked = _check(annotation, value)
        self.assertEqual(checked, expected)
        self.assertIs(type(checked), type(expected))
        if isinstance(expected, tuple):
            self.assertEqual(list(map(type, checked)), list(map(type, expected)))


class CheckRangeTest(parameterized.TestCase):
    @parameterized.parameters((0, 1, False), (11, 10, True))
    def test_reason_explains_only_the_upper_bound(self, value, bound, has_reason):
        config = dataclasses.make_dataclass("Config", ["key"])(value)
        with messages.raises(errors.ConfigError, "key", bound, value) as raised:
            config_checks.check_range(config, "key", 1, 10, "too many")
        self.assertEqual("too many" in str(raised.exception), has_reason)


if __name__ == "__main__":
    absltest.main()
