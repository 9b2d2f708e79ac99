"""Reads the scalars of TensorBoard event files, including damaged files."""

import logging
import operator
import pathlib
import re
from collections.abc import Iterator

import tensorflow as tf
from google.protobuf import message
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow
from tensorboard.plugins.scalar import metadata as scalar_metadata
from tensorflow.python.lib.io import tf_record  # TensorFlow exports no reader with an offset.

from laser_tf import errors

_NUMBER = re.compile(r"event file (\d+)")
_HEADER_BYTES = 12  # length (8) and its checksum (4)
_FRAME_BYTES = _HEADER_BYTES + 4  # with the checksum of the content


def number_next_file(folder: pathlib.Path) -> event_pb2.SessionLog:
    """Returns the first content of a new event file: its number among the files of the directory.

    File names contain the time, and the clock may go back between two sessions.
    """
    return event_pb2.SessionLog(msg=f"event file {len(_list_files(folder))}")


def read_scalars(folder: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """Returns (step, value) pairs of each scalar in the order of writing.

    Damaged records and unreadable files are skipped; each affected file gives one warning.

    Args:
      folder: Directory of event files. A missing directory has no scalars.
    """
    scalars: dict[str, list[tuple[int, float]]] = {}
    for event in _read_events(folder):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == scalar_metadata.PLUGIN_NAME:
                number = float(tf.make_ndarray(value.tensor))
                scalars.setdefault(value.tag, []).append((event.step, number))
    return scalars


def _list_files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("*tfevents*"))


def _read_events(folder: pathlib.Path) -> Iterator[event_pb2.Event]:
    """Yields the events of all files, ordered by the number of the file.

    A file without a number, or whose number is damaged, has its position among the sorted names.
    """
    files = []
    for position, path in enumerate(_list_files(folder)):
        events = _read_file(path)
        matches = (_NUMBER.fullmatch(event.session_log.msg) for event in events)
        number = next((int(match[1]) for match in matches if match), position)
        files.append((number, position, events))
    for _, _, events in sorted(files, key=operator.itemgetter(0, 1)):
        yield from events


def _read_file(path: pathlib.Path) -> list[event_pb2.Event]:
    events: list[event_pb2.Event] = []
    skipped = offset = 0
    try:
        content = path.read_bytes()
        reader = tf_record.tf_record_random_reader(str(path))
        while offset < len(content):
            try:
                record, end = reader.read(offset)
                events.append(event_pb2.Event.FromString(record))
            except (tf.errors.DataLossError, message.DecodeError, IndexError):
                end = _find_record(content, offset + 1)
                skipped += end - offset
            offset = end
    except (OSError, tf.errors.OpError) as error:
        logging.warning("Skipped event file %s: %s", path, errors.first_line(error))
    if skipped:
        logging.warning(
            "Skipped %s of %s bytes of %s: damaged or incomplete records",
            f"{skipped:,}", f"{len(content):,}", path,
        )  # fmt: skip
    return events


def _find_record(content: bytes, start: int) -> int:
    """Returns the offset of the first record header at or after `start`, else the content's end."""
    for offset in range(start, len(content) - _FRAME_BYTES):
        length = content[offset : offset + 8]
        if 0 < int.from_bytes(length, "little") <= len(content) - offset - _FRAME_BYTES:
            checksum = content[offset + 8 : offset + _HEADER_BYTES]
            if pywrap_tensorflow.masked_crc32c(length) == int.from_bytes(checksum, "little"):
                return offset
    return len(content)
