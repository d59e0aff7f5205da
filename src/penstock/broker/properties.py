"""Java's properties files, and the environment variables of the apache/kafka image that override them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PREFIX = "KAFKA_"
_NOT_CONFIGS = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_HOME",
    }
)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY_END = re.compile(r"(?<!\\)[=:\s]")


def parse_properties(text: str) -> dict[str, str]:
    """`key=value` lines; `#` and `!` begin comments, a backslash at the end continues a line."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _KEY_END.search(line)
        key, rest = (line, "") if end is None else (line[: end.start()], line[end.start() :].lstrip())
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip()
        values[_unescape(key)] = _unescape(rest)
    return values


def format_properties(values: Mapping[str, str]) -> str:
    """The reverse of `parse_properties`, one line a key."""
    return "".join(f"{_escape(key, '=: ')}={_escape(value, '')}\n" for key, value in values.items())


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """KAFKA_LOG_RETENTION_MS is log.retention.ms; `__` stands for an underscore, `___` for a dash."""
    return {
        _config_name(name): value
        for name, value in environment.items()
        if name.startswith(_PREFIX) and name not in _NOT_CONFIGS
    }


def _config_name(variable: str) -> str:
    name = variable[len(_PREFIX) :].lower()
    return re.sub(r"_{1,3}", lambda run: {1: ".", 2: "_", 3: "-"}[len(run.group())], name)


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    continued = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            continued += line[:-1]
            continue
        lines.append(continued + line)
        continued = ""
    if continued:
        lines.append(continued)
    return lines


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] == "u" and len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text)


def _escape(text: str, special: str) -> str:
    out = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    for char in special:
        out = out.replace(char, "\\" + char)
    return out
