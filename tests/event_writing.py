"""Writes records of TensorBoard's event files."""

from __future__ import annotations

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboardX.proto.tensor_pb2 import TensorProto

from verl_tui.sources.formats.tensorboard.frames import checksum

BEGAN = 1.7e9


def event(at: int, step: int, value: Summary.Value) -> bytes:
    """Return the record of one value."""
    summary = Summary(value=[value])
    return _framed(Event(wall_time=BEGAN + at, step=step, summary=summary))


def version() -> bytes:
    """Return the record that begins a file."""
    return _framed(Event(wall_time=BEGAN, file_version="brain.Event:2"))


def _framed(event: Event) -> bytes:
    data = event.SerializeToString()
    header = len(data).to_bytes(8, "little")
    return header + checksum(header) + data + checksum(data)


def tensor(tag: str, value: float, plugin: str = "") -> Summary.Value:
    """Return a value as TensorFlow 2 writes it."""
    metadata = SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name=plugin)
    )
    return Summary.Value(
        tag=tag,
        metadata=metadata if plugin else None,
        tensor=TensorProto(dtype="DT_FLOAT", float_val=[value]),
    )
