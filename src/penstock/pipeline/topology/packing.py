"""Objects as bytes between the tasks of a job and in its state.

Rows are pickled. Classes that a pipeline's own file defines cannot be imported where the tasks run: those that came
along with the flow are put where their names say (`announce`); one that was made inside a function has no such place
and is looked up by name. Keys are packed so that equal keys give equal bytes, which a pickle does not promise.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import types
import typing
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import msgspec

_announced: dict[tuple[str, str], type] = {}
_keys = msgspec.msgpack.Encoder(order="deterministic")


def announce(classes: Iterable[type]) -> None:
    """Those are the classes that their names stand for, in this process, from now on."""
    for one in classes:
        _announced[one.__module__, one.__qualname__] = one
        if "." not in one.__qualname__:
            module = sys.modules.get(one.__module__) or types.ModuleType(one.__module__)
            sys.modules.setdefault(one.__module__, module)
            if not hasattr(module, one.__name__):
                setattr(module, one.__name__, one)


def pack(value: Any) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError):
        out = BytesIO()
        _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(value)
        return out.getvalue()


def unpack(data: bytes) -> Any:
    return pickle.loads(data)


def pack_key(key: Any) -> bytes:
    try:
        return _keys.encode(key)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a key of type {type(key).__name__} cannot be compared by its bytes ({error}); "
            "use text, numbers, bytes, tuples or a dataclass of these"
        ) from error


def pack_equal(value: Any) -> bytes:
    """Equal values give equal bytes. A pickle tells by references which parts are one object, and a copy of a value may
    have others in common; it has to do for classes that nothing else takes apart."""
    try:
        return _keys.encode(value)
    except (TypeError, ValueError, OverflowError):
        return pack(unpack(pack(value)))


def classes_of(functions: Iterable[Any]) -> list[type]:
    """Every class outside of the installed packages that these functions and types can reach."""
    found: dict[int, type] = {}
    seen: set[int] = set()
    waiting = list(functions)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, type):
            if one.__module__ not in ("builtins", "typing") and not one.__module__.startswith("penstock."):
                found[id(one)] = one
                waiting += _fields(one)
        elif isinstance(one, types.FunctionType):
            waiting += _globals(one)
        elif isinstance(one, types.MethodType):
            waiting += [one.__func__, type(one.__self__)]
        else:
            waiting += typing.get_args(one)
    return [one for one in found.values() if "<locals>" in one.__qualname__ or not _is_installed(one)]


def _fields(one: type) -> list[Any]:
    """The types of its fields, its bases, and what its methods use."""
    hints: dict[str, Any] = {}
    if dataclasses.is_dataclass(one) or hasattr(one, "__annotations__"):
        try:
            hints = typing.get_type_hints(one)
        except NameError:
            hints = {}
    methods = [value for value in vars(one).values() if isinstance(value, types.FunctionType)]
    return [*hints.values(), *one.__bases__, *methods]


def _globals(function: types.FunctionType) -> list[Any]:
    """The functions and classes that its code names, also those in its closure and defaults."""
    codes = [function.__code__]
    names: list[str] = []
    while codes:
        code = codes.pop()
        names += code.co_names
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    used = [function.__globals__[name] for name in names if name in function.__globals__]
    used += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    used += function.__defaults__ or ()
    return [one for one in used if isinstance(one, type | types.FunctionType | types.MethodType)]


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_installed(one: type) -> bool:
    return one.__module__.split(".")[0] in _STANDARD


_STANDARD = frozenset(sys.stdlib_module_names)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and (obj.__module__, obj.__qualname__) in _announced:
            return _announced_class, (obj.__module__, obj.__qualname__)
        return NotImplemented


def _announced_class(module: str, name: str) -> type:
    try:
        return _announced[module, name]
    except KeyError:
        raise LookupError(
            f"the class {name} of {module} is in the state or the rows of this pipeline, and its definition no longer "
            "reaches it; name it as a type (value=, to=), or start with a new checkpoint"
        ) from None
