"""Rules that more than one table needs: each says what is wrong with a text, or None."""

from __future__ import annotations


def empty_fault(text: str) -> str | None:
    return None if text else "the value is empty"


def gzip_level_fault(text: str) -> str | None:
    return None if text == "-1" or 1 <= int(text) <= 9 else f"{text} is neither -1 nor between 1 and 9"
