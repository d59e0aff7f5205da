"""What a server and all its child processes cost, read from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Summed over a process and its descendants."""

    cpu_s: float
    rss_bytes: int
    open_files: int
    processes: int


def usage(pid: int) -> Usage:
    tree = descendants(pid)
    return Usage(
        cpu_s=sum(_cpu_s(each) for each in tree),
        rss_bytes=sum(_rss_bytes(each) for each in tree),
        open_files=sum(_open_files(each) for each in tree),
        processes=len(tree),
    )


def descendants(pid: int) -> list[int]:
    """The process itself first, then its children, their children and so on."""
    found = [pid]
    for each in found:
        for task in _listing(f"/proc/{each}/task"):
            found.extend(int(child) for child in _text(f"/proc/{each}/task/{task}/children").split())
    return found


def _cpu_s(pid: int) -> float:
    """User and system time, with that of children that have ended."""
    stat = _text(f"/proc/{pid}/stat")
    # The name in parentheses may hold spaces; utime, stime, cutime and cstime are the 12th to 15th field behind it.
    fields = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_S


def _rss_bytes(pid: int) -> int:
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _open_files(pid: int) -> int:
    return len(_listing(f"/proc/{pid}/fd"))


def _text(path: str) -> str:
    """Empty where the process ended in between."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _listing(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
