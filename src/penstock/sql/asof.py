"""`AS OF`: a topic as it was. The clause is taken out of the tokens before the parser, which has no rule for it, sees
them, and the table's name carries its number until the tree is there.

| clause | each partition ends |
|---|---|
| `AS OF OFFSET 1000`, `AS OF 1000` | before offset 1000 |
| `AS OF OFFSETS '{"0": 5, "1": 7}'` | before the offset that is named for it; -1 is its end |
| `AS OF TIMESTAMP '2026-11-01 10:00'`, `AS OF '2026-11-01 10:00'` | before the first record later than that; UTC |
| `AS OF TIMESTAMP 1793527200000` | the same, in ms since 1970 |
| `AS OF TIMESTAMP '-1h'` | the same, counted back from now: s, m, h, d |
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlglot import Token, TokenType

from penstock.sql.errors import SqlError

MARK = "\x1f"
"""Between a table's name and the number of its clause: no name of a topic has it."""
LITERALS = (TokenType.NUMBER, TokenType.STRING)
UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
EXAMPLE = "write AS OF OFFSET 1000, AS OF OFFSETS '{\"0\": 5}' or AS OF TIMESTAMP '2026-11-01 10:00'"


@dataclass(frozen=True, slots=True)
class AsOfOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class AsOfOffsets:
    offsets: tuple[tuple[int, int], ...]
    """partition and the offset before which it ends; -1: where it ends today."""


@dataclass(frozen=True, slots=True)
class AsOfTime:
    timestamp_ms: int
    """records of this very millisecond are in."""


AsOf = AsOfOffset | AsOfOffsets | AsOfTime


def take_clauses(tokens: list[Token]) -> tuple[list[Token], list[AsOf]]:
    """The tokens without the clauses, and the clauses; the token before clause n is marked with n."""
    kept: list[Token] = []
    clauses: list[AsOf] = []
    at = 0
    while at < len(tokens):
        length = _length(tokens, at)
        if not length or not kept:
            kept.append(tokens[at])
            at += 1
            continue
        kept[-1] = _marked(kept[-1], len(clauses))
        words = [one.text for one in tokens[at + 2 : at + length]]
        clauses.append(_clause(words[0].upper() if len(words) > 1 else "", tokens[at + length - 1]))
        at += length
    return kept, clauses


def split_mark(name: str) -> tuple[str, int | None]:
    """A name and the number of its clause."""
    plain, marked, number = name.partition(MARK)
    return plain, int(number) if marked else None


def _length(tokens: list[Token], at: int) -> int:
    """How many tokens from here on are a clause; 0: none."""
    if tokens[at].token_type is not TokenType.ALIAS or at + 2 >= len(tokens) or tokens[at + 1].text.upper() != "OF":
        return 0
    if tokens[at + 2].token_type in LITERALS:
        return 3
    if tokens[at + 2].text.upper() not in ("OFFSET", "OFFSETS", "TIMESTAMP"):
        return 0
    if at + 3 >= len(tokens) or tokens[at + 3].token_type not in LITERALS:
        raise SqlError(f"AS OF {tokens[at + 2].text.upper()} needs a number or a text behind it", EXAMPLE)
    return 4


def _marked(token: Token, number: int) -> Token:
    return Token(TokenType.IDENTIFIER, f"{token.text}{MARK}{number}", token.line, token.col, token.start, token.end)


def _clause(word: str, literal: Token) -> AsOf:
    is_number = literal.token_type is TokenType.NUMBER
    if word == "OFFSETS":
        return _offsets(literal.text)
    if word == "TIMESTAMP" or (not word and not is_number):
        return AsOfTime(_whole(literal.text) if is_number else timestamp_ms(literal.text))
    return AsOfOffset(_whole(literal.text))


def _whole(text: str) -> int:
    if not text.isdigit():
        raise SqlError(f"AS OF {text!r}: a whole number was expected", EXAMPLE)
    return int(text)


def _offsets(text: str) -> AsOfOffsets:
    try:
        found = sorted((int(partition), int(offset)) for partition, offset in json.loads(text).items())
    except (ValueError, TypeError, AttributeError):
        raise SqlError(f"AS OF OFFSETS {text!r} is no JSON of offsets by partition", EXAMPLE) from None
    if any(offset < -1 for _, offset in found):
        raise SqlError(f"AS OF OFFSETS {text!r}: an offset is 0 or more, or -1 for the end", EXAMPLE)
    return AsOfOffsets(tuple(found))


def timestamp_ms(text: str, now: datetime | None = None) -> int:
    """A time as people write it; UTC where it names no zone."""
    back = re.fullmatch(r"-\s*(\d+)\s*([smhd])", text.strip())
    if back is not None:
        moment = (now or datetime.now(UTC)) - timedelta(seconds=int(back[1]) * UNITS_S[back[2]])
        return round(moment.timestamp() * 1000)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SqlError(f"{text!r} is no time", "write 2026-11-01 10:00, 2026-11-01T10:00:00Z, or -1h") from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int((zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
