"""Why a query ended, in the pipeline's own terms.

A task that fails writes what is known as one marked line into its error; Spark wraps that in pages of its own, from
which `clear` finds the line again. What our source and our sink refuse stands there as the end of their traceback.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from penstock.pipeline.telling import told_in
from penstock.pipeline.topology.flow import PipelineError

_MARK: Final = "PENSTOCK-PIPELINE-ERROR "
_MARKED: Final = re.compile(re.escape(_MARK) + r"(\{.*\})")
_NOT_THE_USERS: Final = ("/penstock/pipeline/", "/pyspark/", "/pyspark.zip/")


class TaskFailed(Exception):
    """What a task raises for Spark to carry."""


class PipelineFailed(RuntimeError):
    """A function of the definition failed, or a record cannot be worked on, read or written. Its text says which, where
    and why."""

    def __init__(self, text: str, *, node: str = "", where: str = "", record: str = "", error: str = "") -> None:
        super().__init__(text)
        self.node, self.where, self.record, self.error = node, where, record, error


@contextmanager
def telling() -> Iterator[None]:
    """Around the work of a task."""
    try:
        yield
    except PipelineError as error:
        cause = error.__cause__ or error
        told = {
            "node": error.node,
            "where": error.where,
            "record": error.what,
            "error": error.error,
            "traceback": _users(cause, cause.__traceback__),
        }
        raise TaskFailed(_MARK + json.dumps(told)) from error
    except StateRefused as error:
        raise TaskFailed(_MARK + json.dumps({"refused": str(error)})) from error


class StateRefused(RuntimeError):
    """The checkpoint's state does not belong to this definition."""


def clear(error: BaseException) -> BaseException:
    """The pipeline's own error where one is inside, else the error as it is."""
    text = _text(error)
    found = _MARKED.search(text)
    if found is None:
        of_ours = told_in(text)
        return error if of_ours is None else PipelineFailed(of_ours)
    told: dict[str, Any] = json.JSONDecoder().raw_decode(found.group(1))[0]
    if "refused" in told:
        return PipelineFailed(told["refused"])
    text = f"{told['node']}, defined at {told['where']}, failed on {told['record']}: {told['error']}"
    if told["traceback"]:
        text += "\n" + told["traceback"].rstrip()
    return PipelineFailed(text, **{name: told[name] for name in ("node", "where", "record", "error")})


@contextmanager
def cleared() -> Iterator[None]:
    """Around a wait for a query, or an action on a frame."""
    try:
        yield
    except Exception as error:
        known = clear(error)
        if known is error:
            raise
        raise known from None


def _text(error: BaseException) -> str:
    """Spark tells it in `desc`, in the message, or in the cause, by the kind of the error."""
    parts = [str(error), str(getattr(error, "desc", ""))]
    cause: Any = getattr(error, "_cause", None) or error.__cause__
    while cause is not None:
        parts.append(str(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(parts)


def _users(error: BaseException, trace: TracebackType | None) -> str:
    """The traceback without our frames and Spark's."""
    frames = [one for one in traceback.extract_tb(trace) if not any(part in one.filename for part in _NOT_THE_USERS)]
    if not frames:
        return ""
    lines = traceback.format_list(frames) + traceback.format_exception_only(error)
    return "Traceback (most recent call last):\n" + "".join(lines)
