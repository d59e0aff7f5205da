"""now() in the WHERE of a continuous result: the moment at which it was asked. Pure.

Each batch that arrives is asked by itself, a moment after its records were written: counted anew each time,
`timestamp > now()` would hold for none of them.
"""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

FUNCTIONS = ("now", "get_current_timestamp", "transaction_timestamp")
WORDS: dict[type[exp.Expr], exp.DType] = {
    exp.CurrentTimestamp: exp.DType.TIMESTAMPTZ,
    exp.CurrentDate: exp.DType.DATE,
    exp.Localtimestamp: exp.DType.TIMESTAMP,
}


def fix_now(tree: exp.Query, now: datetime) -> None:
    """`now` is in UTC. What is selected keeps its own: how old a row is when it is told, say."""
    for where in list(tree.find_all(exp.Where)):
        for node in list(where.find_all(exp.Anonymous, *WORDS)):
            kind = _kind(node)
            if kind is not None:
                text = now.isoformat(sep=" ") if kind is exp.DType.TIMESTAMPTZ else now.replace(tzinfo=None).isoformat()
                node.replace(exp.cast(exp.Literal.string(text[:10] if kind is exp.DType.DATE else text), kind))


def _kind(node: exp.Expr) -> exp.DType | None:
    if isinstance(node, exp.Anonymous):
        is_now = str(node.this).lower() in FUNCTIONS and not node.expressions
        return exp.DType.TIMESTAMPTZ if is_now else None
    return WORDS[type(node)]
