"""Search relevance: which result is worth its place? Impressions and clicks, joined within half a minute.

An impression without a click counts against its document, so the join is a left one: it speaks when the time for a
click is over. The table `click-through` has shown and clicked for every query and document.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline import JoinWindows, Pipeline


@dataclass
class Impression:
    query: str
    document: str
    position: int


@dataclass
class Click:
    document: str


@dataclass
class Seen:
    query: str
    document: str
    clicked: bool


@dataclass
class Relevance:
    shown: int = 0
    clicked: int = 0


def seen(impression: Impression, click: Click | None) -> Seen:
    return Seen(impression.query, impression.document, click is not None)


pipeline = Pipeline("search-relevance")
# The key of both topics is the id that the page gave to this one impression.
impressions = pipeline.stream("impressions", value=Impression, starting="earliest")
clicks = pipeline.stream("clicks", value=Click, starting="earliest")
(
    impressions.left_join(clicks, seen, JoinWindows.of(0, after="30 seconds", grace="5 seconds"), to=Seen)
    .group_by(lambda seen: f"{seen.query} > {seen.document}", key=str)
    .aggregate(Relevance, lambda sum_, seen: Relevance(sum_.shown + 1, sum_.clicked + seen.clicked))
    .to("click-through")
)
