"""What a replay server says of its tables, for those who ask it again and again.

`reverb.Client.server_info` decodes each table's signature, and each decoding makes new classes for
its named tuples, some thousand of which stay alive. A process that asks every two seconds
grew by 4 MiB a minute at first. Here signatures stay encoded until somebody wants them.
"""

from typing import TypeAlias

import reverb
from reverb.cc import schema_pb2

TableInfo: TypeAlias = schema_pb2.TableInfo


def read(client: reverb.Client, seconds: int = 0) -> dict[str, TableInfo]:
    """Asks the server of a client, in one call: the tables by name.

    Args:
      client: of the server.
      seconds: that it has to answer in; 0: as long as it takes.

    Raises:
      DeadlineExceededError: if it does not.
      RuntimeError: whatever else is the matter with the server.
    """
    try:
        # Reverb's public call is this one and the decoding.
        encoded = client._client.ServerInfo(seconds)
    except RuntimeError as error:
        if "Deadline Exceeded" in str(error):
            raise reverb.DeadlineExceededError(str(error)) from None
        raise
    infos = [TableInfo.FromString(table) for table in encoded]
    return {info.name: info for info in infos}


def signature(info: TableInfo) -> reverb.reverb_types.SpecNest:
    """A table's signature, decoded: specs of tensors in named tuples of classes of their own."""
    return reverb.reverb_types.TableInfo.from_serialized_proto(info.SerializeToString()).signature
