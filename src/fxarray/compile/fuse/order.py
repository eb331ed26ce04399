"""The order in which the nodes of a Program run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from fxarray.compile.fuse.group import Node


def in_order(
    nodes: Sequence[Node], sources: Callable[[Node], Iterable[Node]], ordered: Sequence[Node]
) -> list[Node]:
    """Nodes, each after those it depends on, else by their last place in the Program.

    That keeps values alive about as long as the Program does.

    Args:
      nodes: the nodes.
      sources: those whose results a node reads, each once.
      ordered: nodes that must keep this order.
    """
    waiting: dict[Node, int] = {}
    followers: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        needed = list(sources(node))
        waiting[node] = len(needed)
        for source in needed:
            followers[source].append(node)
    for before, after in pairwise(ordered):
        followers[before].append(after)
        waiting[after] += 1
    numbers = {node: place for place, node in enumerate(nodes)}
    ready = [(node.last, numbers[node], node) for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    result: list[Node] = []
    while ready:
        node = heapq.heappop(ready)[2]
        result.append(node)
        for follower in followers[node]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, (follower.last, numbers[follower], follower))
    assert len(result) == len(nodes), "groups depend on one another"
    return result
