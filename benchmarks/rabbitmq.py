"""RabbitMQ as the comparison of queues starts it: the system's package, a node of its own in a directory of its own.

Name, ports, data, logs and the port mapper (epmd) are this run's alone; a service of the system is not touched.
"""

import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from ports import free_port
from queue_load import RABBIT_LIBS
from servers import ServerFailed

PACKAGE = Path("/usr/lib/rabbitmq/lib")
STOP_TIMEOUT_S = 30.0
_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
_METHOD_FRAME = b"\x01"


class RabbitMQ:
    """One node with its defaults. Which kind of queue it serves is the load's business."""

    name = "rabbitmq"

    def __init__(self) -> None:
        self._mapper_port = 0

    def version(self) -> str:
        return _script().parent.parent.name.removeprefix("rabbitmq_server-")

    def prepare(self, directory: Path, port: int) -> None:
        _script()
        if not any(RABBIT_LIBS.glob("amqp-client-*.jar")):
            raise ServerFailed("RabbitMQ's Java client is missing: `python tools/fetch_rabbitmq_client.py` brings it")
        self._mapper_port = free_port()
        (directory / "enabled_plugins").write_text("[].\n")
        (directory / "rabbitmq.conf").write_text("log.console = true\n")

    def command(self, directory: Path, port: int) -> list[str]:
        settings = {
            "HOME": directory,
            "RABBITMQ_NODENAME": f"penstock-bench-{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": port,
            "RABBITMQ_DIST_PORT": port + 1,
            "RABBITMQ_MNESIA_BASE": directory / "data",
            "RABBITMQ_LOG_BASE": directory,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": directory / "pid",
            "RABBITMQ_CONFIG_FILE": directory / "rabbitmq",
            "RABBITMQ_CONF_ENV_FILE": directory / "no-such-file",
            "RABBITMQ_ENABLED_PLUGINS_FILE": directory / "enabled_plugins",
            **self._mapper(),
        }
        return ["env", *(f"{name}={value}" for name, value in settings.items()), str(_script())]

    def clean_up(self) -> None:
        """Erlang leaves its port mapper behind."""
        mapper = shutil.which("epmd")
        if mapper is not None and self._mapper_port:
            pairs = [f"{name}={value}" for name, value in self._mapper().items()]
            subprocess.run(["env", *pairs, mapper, "-kill"], capture_output=True, timeout=STOP_TIMEOUT_S, check=False)

    def _mapper(self) -> dict[str, object]:
        return {"ERL_EPMD_PORT": self._mapper_port, "ERL_EPMD_ADDRESS": "127.0.0.1"}


def answers(port: int) -> bool:
    """Whether a client's protocol header is answered with the first method of a connection."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
        connection.sendall(_PROTOCOL_HEADER)
        return connection.recv(1) == _METHOD_FRAME
    return False


def _script() -> Path:
    """Debian's own start script insists on its user; the one that it calls does not."""
    found = sorted(PACKAGE.glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    if not found:
        raise ServerFailed("RabbitMQ is missing: install the package `rabbitmq-server`; its service need not run")
    return found[-1]
