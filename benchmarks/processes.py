"""What a server and all its child processes cost, read from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Summed over a process and its descendants."""

    cpu_s: float
    """user and system time, with that of children that have ended"""
    kernel_s: float
    """the system's part of it"""
    rss_bytes: int
    open_files: int
    processes: int


def usage(pid: int) -> Usage:
    tree = descendants(pid)
    times = [_times_s(each) for each in tree]
    return Usage(
        cpu_s=sum(user + kernel for user, kernel in times),
        kernel_s=sum(kernel for _, kernel in times),
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


def _times_s(pid: int) -> tuple[float, float]:
    """In the program, and in the kernel for it."""
    stat = _text(f"/proc/{pid}/stat")
    # The name in parentheses may hold spaces; utime, stime, cutime and cstime are the 12th to 15th field behind it.
    fields = stat.rpartition(")")[2].split()
    user, kernel, childrens_user, childrens_kernel = (int(field) / _TICKS_PER_S for field in fields[11:15] or [0] * 4)
    return user + childrens_user, kernel + childrens_kernel


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
