"""The SQL that is understood: DuckDB's, with backticks around names as well as double quotes, topics' names with dots
and dashes, and two things of our own, `AS OF` (see `asof`) and `header('name')`. Written out for DuckDB here, for Spark
by `spark_dialect`.
"""

from __future__ import annotations

from sqlglot import Token, TokenType, exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB

HEADER = "header"
"""header('trace'), header(o.headers, 'trace'): the last header of that name, as text."""
HEADERS = "headers"
BEFORE_A_TABLE = (TokenType.FROM, TokenType.JOIN, TokenType.DESCRIBE)
DUCKDB = "duckdb"
SPARK = "spark"


class TopicSql(DuckDB):
    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]


def tokenize(text: str) -> list[Token]:
    return join_dashes(Dialect.get_or_raise(TopicSql).tokenize(text))


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    return list(Dialect.get_or_raise(TopicSql).parser().parse(tokens, text))


def join_dashes(tokens: list[Token]) -> list[Token]:
    """`FROM page-views` names one topic: a minus has no meaning there."""
    joined: list[Token] = []
    in_name = False
    for token in tokens:
        last = joined[-1] if joined else None
        begins = last is not None and last.token_type in BEFORE_A_TABLE
        glued = last is not None and last.end + 1 == token.start
        in_name = begins or (in_name and glued and token.token_type is not TokenType.L_PAREN)
        if last is not None and in_name and not begins and (_is_dash(token) or _goes_on(last)):
            text = last.text + token.text
            joined[-1] = Token(TokenType.IDENTIFIER, text, last.line, last.col, last.start, token.end)
        else:
            joined.append(token)
    return joined


def _is_dash(token: Token) -> bool:
    return token.token_type is TokenType.DASH


def _goes_on(token: Token) -> bool:
    """`2.` is a number to the tokenizer."""
    return token.token_type is not TokenType.DOT and token.text.endswith(("-", "."))


def complete_headers(tree: exp.Expr) -> None:
    """header('x') is header(headers, 'x')."""
    for call in list(_header_calls(tree)):
        if len(call.expressions) == 1:
            call.set("expressions", [exp.column(HEADERS), call.expressions[0]])


def _header_calls(tree: exp.Expr) -> list[exp.Anonymous]:
    return [one for one in tree.find_all(exp.Anonymous) if str(one.this).lower() == HEADER]


def duckdb_sql(tree: exp.Expr) -> str:
    return tree.transform(_for_duckdb).sql(DUCKDB)


def _for_duckdb(node: exp.Expr) -> exp.Expr:
    source = header_parts(node)
    if source is None:
        return divided(node)
    headers, name = source
    found = f"list_filter({headers.sql(DUCKDB)}, lambda h: h.key = {name.sql(DUCKDB)})"
    return parse_one(f"decode({found}[-1].value)", dialect=DUCKDB)


def divided(node: exp.Expr) -> exp.Expr:
    """What is divided by nothing is null, in every version of either engine."""
    if isinstance(node, exp.Div | exp.Mod | exp.IntDiv) and not _is_something(node.expression):
        node.set("expression", exp.Nullif(this=exp.paren(node.expression), expression=exp.Literal.number(0)))
    return node


def _is_something(divisor: exp.Expr) -> bool:
    return isinstance(divisor, exp.Nullif) or (isinstance(divisor, exp.Literal) and str(divisor.this).strip("0.") != "")


def header_parts(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() != HEADER or len(node.expressions) != 2:
        return None
    headers, name = node.expressions
    return headers, name
