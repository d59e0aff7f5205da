"""The functions of a definition: how many arguments each is given, what it says that it returns, what it gave."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

Joiner = Callable[[Any, Any, Any], Any]
"""(key, left value, right value) to the joined value"""


def by_arity(function: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    """A user's function of (value) or of (key, value), as one of (key, value)."""
    count = _positional(function, name, usual=1)
    if count == 1:
        return lambda key, value: function(value)
    if count == 2:
        return function
    raise TypeError(f"{name}: the function takes {count} arguments; it is given the value, or the key and the value")


def fold_by_arity(function: Callable[..., Any], name: str) -> Callable[[Any, Any, Any], Any]:
    """A user's function of (aggregate, value) or of (key, value, aggregate), as one of (key, value, aggregate)."""
    count = _positional(function, name, usual=2)
    if count == 2:
        return lambda key, value, aggregate: function(aggregate, value)
    if count == 3:
        return function
    raise TypeError(
        f"{name}: the function takes {count} arguments; it is given (aggregate, value) or (key, value, aggregate)"
    )


def reducer(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A user's function of (the value so far, the next)."""
    count = _positional(function, name, usual=2)
    if count != 2:
        raise TypeError(f"{name}: the function takes {count} arguments; it is given (the value so far, the next)")
    return function


def joiner_by_arity(joiner: Callable[..., Any]) -> Joiner:
    """A user's function of (left, right) or of (key, left, right), as one of (key, left, right)."""
    count = _positional(joiner, "the joiner", usual=2)
    if count == 2:
        return lambda key, left, right: joiner(left, right)
    if count == 3:
        return joiner
    raise TypeError(f"the joiner takes {count} arguments; it is given (left, right) or (key, left, right)")


def maker(function: Callable[[], Any], name: str) -> Callable[[], Any]:
    """A user's function of nothing, or a class."""
    if not callable(function):
        raise TypeError(
            f"{name}: {function!r} is not a function; it is called without arguments, as int or list can be"
        )
    return function


def pair_of(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(f"the function gave {made!r}; it gives a pair (key, value)")
    return made


def returned(function: Any) -> Any:
    """The type that a function's annotation names, None where there is none; a class gives itself."""
    if isinstance(function, type):
        return function
    try:
        said = typing.get_type_hints(function).get("return")
    except Exception:  # a name that only a type checker knows, or no function at all
        return None
    return None if said in (Any, object, types.NoneType) else without_none(said)


def without_none(kind: Any) -> Any:
    """`str | None` is text: a missing value is a record without one, whatever its type."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return kind
    others = [one for one in typing.get_args(kind) if one is not types.NoneType]
    return others[0] if len(others) == 1 else kind


def _positional(function: Callable[..., Any], name: str, *, usual: int) -> int:
    """How many arguments have to be given. `usual`: for a class, and for a function that does not say."""
    if not callable(function):
        raise TypeError(f"{name}: {function!r} is not a function")
    if isinstance(function, type):
        return usual
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return usual  # max, min and others of Python's own
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return usual
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in places and one.default is one.empty for one in parameters)
