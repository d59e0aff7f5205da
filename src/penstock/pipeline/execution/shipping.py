"""A definition on its way to the tasks: pickled once, opened once in each Python worker.

Functions and classes of the pipeline's own files go by value, as those files are not installed where the tasks run;
those of installed packages go by name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import sysconfig
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pyspark import cloudpickle as _cloudpickle

from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.topology.flow import Flow

cloudpickle: Any = _cloudpickle  # it has no types
_OPENED_MAX: Final = 8
_MSGSPEC_CACHE: Final = "__msgspec_cache__"
"""What msgspec leaves on a class that it has decoded to. It cannot be pickled, and is made anew when it is missed."""
_DEPTH_OF_A_NODE: Final = 20
_SENTINELS: Final = ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "_HAS_DEFAULT_FACTORY")
_opened: OrderedDict[str, Plan] = OrderedDict()


class Shipped:
    """What a task's closure holds. `open()` gives the plan."""

    def __init__(self, blob: bytes) -> None:
        self.blob = blob
        self.digest = hashlib.sha256(blob).hexdigest()

    def open(self) -> Plan:
        plan = _opened.get(self.digest)
        if plan is None:
            plan = _opened[self.digest] = Plan(cloudpickle.loads(self.blob))
            while len(_opened) > _OPENED_MAX:
                _opened.popitem(last=False)
        return plan


def ship(flow: Flow) -> Shipped:
    for one in flow.classes:
        if _MSGSPEC_CACHE in vars(one):
            delattr(one, _MSGSPEC_CACHE)
    by_value = [module for module in list(sys.modules.values()) if _is_own(module)]
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        return Shipped(_pickled(flow))
    except Exception as error:
        raise TypeError(
            f"{flow.name} cannot be sent to Spark's tasks: {type(error).__name__}: {error}. A function of "
            "the definition uses an object that lives in this process only (a connection, a session, a lock): "
            "make it inside the function"
        ) from error
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # its base has no types
    def reducer_override(self, obj: Any) -> Any:
        """Dataclasses know their sentinels by identity, which a copy would not have."""
        if type(obj).__module__ == "dataclasses" and not isinstance(obj, type):
            for name in _SENTINELS:
                if obj is getattr(dataclasses, name, None):
                    return name
        return super().reducer_override(obj)


def _pickled(flow: Flow) -> bytes:
    out = BytesIO()
    usual = sys.getrecursionlimit()
    # Nodes hold each other: pickle goes as deep as the longest chain.
    sys.setrecursionlimit(usual + _DEPTH_OF_A_NODE * len(flow.nodes))
    try:
        _Pickler(out).dump(flow)
    finally:
        sys.setrecursionlimit(usual)
    return out.getvalue()


def _is_own(module: ModuleType) -> bool:
    """A file of the user's: neither installed nor ours."""
    name, file = getattr(module, "__name__", ""), getattr(module, "__file__", None)
    if not file or name == "__main__" or name.partition(".")[0] in ("penstock", "pyspark_penstock"):
        return False
    if sys.modules.get(name) is not module:
        return False
    return not any(Path(file).is_relative_to(place) for place in _INSTALLED)


_INSTALLED = [
    *{Path(path) for path in sysconfig.get_paths().values()},
    *(Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages", ".zip", "lib-dynload"))),
]
