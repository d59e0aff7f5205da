"""`sasl.jaas.config`, as users of Kafka's Java clients write it: a login module, a flag, options, a semicolon.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="...";

Read as Java reads it: values in quotes with backslash escapes, or plain words; comments are allowed. What is said of a
mistake never repeats a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FLAGS = ("required", "requisite", "sufficient", "optional")
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
    |(?P<word>[\w.$-]+)
    |"(?P<double>(?:[^"\\\r\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\r\n]|\\.)*)'
    |(?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)


class JaasError(ValueError):
    """The text is not of that form."""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    """the class, with its package."""
    options: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str = field(repr=False)


def parse(text: str) -> Module:
    """The one login module of the text."""
    tokens = _tokens(text)
    name = _take(tokens, "word", "the class of a login module")
    flag = _take(tokens, "word", "a flag after the login module, which is nearly always `required`")
    if flag.lower() not in FLAGS:
        raise JaasError(f"the flag after the login module is one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while tokens and tokens[0].kind == "word":
        key = tokens.pop(0).text
        _take(tokens, "=", f"= after {key}")
        if key in options:
            raise JaasError(f"{key} is given twice")
        options[key] = _value(tokens, key)
    _take(tokens, ";", 'a semicolon at the end, after options of the form name="value"')
    if tokens:
        raise JaasError("there is more than one login module")
    return Module(name, options)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError(f"character {at + 1} does not belong there: a quote may be missing, its own or its partner")
        kind, at = match.lastgroup, match.end()
        assert kind is not None
        if kind == "mark":
            found.append(_Token(match.group(), match.group()))
        elif kind in ("double", "single"):
            found.append(_Token("quoted", _ESCAPE.sub(_unescaped, match.group(kind))))
        elif kind == "word":
            found.append(_Token(kind, match.group()))
    return found


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code, 8)) if code.isdigit() and code < "8" else ESCAPES.get(code, code)


def _take(tokens: list[_Token], kind: str, what: str) -> str:
    if not tokens or tokens[0].kind != kind:
        raise JaasError(f"it needs {what}")
    return tokens.pop(0).text


def _value(tokens: list[_Token], key: str) -> str:
    if not tokens or tokens[0].kind not in ("word", "quoted"):
        raise JaasError(f"it needs a value for {key}, in quotes")
    return tokens.pop(0).text
