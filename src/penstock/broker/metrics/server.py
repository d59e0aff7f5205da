"""The server as such: connections, how idle its loop is, what its quorum says, what it read and wrote.

One loop does the work of Kafka's network threads and of its request handlers, so both idle shares are the loop's.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition

_IO = "/proc/self/io"
_DISK_FIELDS = {"read_bytes": "read", "write_bytes": "write"}
_RAFT = "kafka_server_raftmetrics_"


def server(sources: Sources, out: Exposition) -> Iterator[None]:
    for listener in sources.listeners:
        name = "kafka_server_socket_server_metrics_connection_count"
        count = 0 if listener.door is None else len(listener.door.connections)
        out.gauge(name, "Open connections", count, listener=listener.address.name, networkProcessor=0)
    idle = round(sources.probe.idle_share, 4)
    documentation = "Share of its time that the loop has nothing to do, 0 to 1"
    out.gauge("kafka_network_socketserver_networkprocessoravgidle_percent", documentation, idle)
    out.gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", documentation, idle)
    _tell_disk(out)
    yield


def raft(sources: Sources, out: Exposition) -> Iterator[None]:
    now = sources.raft()
    state = out.family(f"{_RAFT}current_state", "untyped", "1 for the state this node is in")
    state.append(f'{_RAFT}current_state{{current_state="{now.state}"}} 1\n')
    out.gauge(f"{_RAFT}current_leader", "The active controller, -1 where none is known", now.leader_id)
    out.gauge(f"{_RAFT}current_epoch", "The quorum's epoch", now.epoch)
    out.gauge(f"{_RAFT}current_vote", "Whom this node voted for in it, -1 for nobody", now.voted_id)
    out.gauge(
        f"{_RAFT}high_watermark", "The first offset of the metadata log that is not committed", now.high_watermark
    )
    out.gauge(f"{_RAFT}log_end_offset", "The next offset of the metadata log here", now.end_offset)
    yield


def _tell_disk(out: Exposition) -> None:
    """What the kernel has read and written for this process. Not every system tells."""
    try:
        with open(_IO, encoding="ascii") as file:
            text = file.read()
    except OSError:
        return
    for line in text.splitlines():
        field, _, value = line.partition(": ")
        if field in _DISK_FIELDS:
            word = _DISK_FIELDS[field]
            out.gauge(
                f"kafka_server_kafkaserver_linux_disk_{word}_bytes", f"Bytes to {word} that reached a disk", int(value)
            )
