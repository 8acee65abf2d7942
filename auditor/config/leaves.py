"""The single settings of a configuration: the leaves of its nested tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def iterate_leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested tables and lists by dotted path.

    A list of tables has its length as a leaf of its own, and its items by name or index, as in `models[gpt].rpm`. Any
    other list is one leaf.
    """
    if isinstance(node, dict):
        for key, child in node.items():
            yield from iterate_leaves(child, f"{path}.{key}" if path else key)
    elif isinstance(node, list) and any(isinstance(child, dict) for child in node):
        yield path, len(node)
        for index, child in enumerate(node):
            name = child.get("name", index) if isinstance(child, dict) else index
            yield from iterate_leaves(child, f"{path}[{name}]")
    else:
        yield path, node
