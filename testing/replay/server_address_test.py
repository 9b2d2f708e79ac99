"""Ports that are tried before Reverb takes them."""

import errno
import socket
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.replay import server_address
from testing import messages


class _WithoutIPv6(socket.socket):
    """A socket of a kernel that was started with `ipv6.disable=1`."""

    def __init__(self, family: int = socket.AF_INET, *args, **kwargs):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, *args, **kwargs)


class CheckPortTest(parameterized.TestCase):
    @parameterized.parameters(socket.socket, _WithoutIPv6)
    def test_a_port_is_tried_with_ipv6_and_without(self, sockets):
        with (
            mock.patch.object(socket, "socket", sockets),
            socket.create_server(("", 0)) as taken,
        ):
            server_address.check_port(0)
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(ValueError, f"^port {port} is in use .*choose another"):
                server_address.check_port(port)


class CheckAnswersTest(absltest.TestCase):
    def test_host_that_cannot_be_encoded_is_rejected(self):
        with messages.raises(errors.ConfigError, "a..b:80"):
            server_address.check_answers("a..b:80")


if __name__ == "__main__":
    absltest.main()
