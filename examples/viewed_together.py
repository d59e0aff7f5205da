"""Items viewed together, for recommendations: "who looked at this also looked at ...".

A visit is a session: the views of a user no more than ten minutes apart. When it is over, every pair of its items
counts once. The table `viewed-together` has, for each item, the items that were seen with it and how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from penstock.pipeline import Pipeline, SessionWindows


@dataclass
class View:
    user: str
    item: str


pipeline = Pipeline("viewed-together")

visits = (
    pipeline.stream("views", value=View, starting="earliest")
    .group_by(lambda view: view.user, key=str)
    .windowed_by(SessionWindows.of("10 minutes", grace="1 minute"), on_close=True)
    .aggregate(
        list,
        lambda items, view: items if view.item in items else [*items, view.item],
        merge=lambda one, other: [*one, *(item for item in other if item not in one)],
        to=list[str],
    )
)
(
    visits.to_stream()
    .flat_map(lambda items: list(permutations(sorted(items), 2)), key=str, to=str)
    .group_by_key()
    .aggregate(dict, lambda seen, other: {**seen, other: seen.get(other, 0) + 1}, to=dict[str, int])
    .to("viewed-together")
)
