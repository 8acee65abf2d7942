"""Figures of tables that differ only in a name, such as that of a measure: written once in a preset, then expanded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

PLACEHOLDER = re.compile(r"\{(\w+)\}")
FIGURE_KEYS = ("figure", "model_figure", "group_figure", "audit", "trial")
Members: TypeAlias = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""By placeholder and name of the alternative: tables with `figure`, and perhaps `label`, `parts` and `departures`."""


def expand_templates(paper: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a preset with its templates expanded by its table `alternatives`, which is left out.

    A key of `figures` or `forms`, such as `{metric}, answers`, becomes one key for each alternative of `metric`. A
    figure under it, such as `{metric}.answer`, becomes one for each table of that alternative: in the names of figure,
    audit and trial, `{metric}` is replaced by its `figure`, in a label by its `label`; its parts and departures are
    added. Of a key with placeholders, only the columns of the table are kept.
    `only = { metric = [NAMES] }` in a figure restricts it to some alternatives.
    """
    members = {name: _normalize(alternatives) for name, alternatives in paper.get("alternatives", {}).items()}
    tables = [
        {
            key: _expand_keys(value, {}, members, table.get("columns", ())) if key in ("figures", "forms") else value
            for key, value in table.items()
        }
        for table in paper.get("tables", ())
    ]
    return {key: value for key, value in paper.items() if key != "alternatives"} | {"tables": tables}


def _normalize(alternatives: Sequence[str] | Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Alternatives as tables by name; a list of names stands for figures of the same names, a text for a figure."""
    by_name = alternatives if isinstance(alternatives, Mapping) else {name: name for name in alternatives}
    return {name: [{"figure": value}] if isinstance(value, str) else list(value) for name, value in by_name.items()}


def _expand_keys(
    table: Mapping[str, Any], names: Mapping[str, str], members: Members, columns: Sequence[str]
) -> dict[str, Any]:
    """Expand the keys of a table, and what is under them; columns are those of the published table, in its order.

    Args:
        names: of the alternatives that the keys around the table stand for, by placeholder.
    """
    order = {column: i for i, column in enumerate(columns)}
    expanded: dict[str, Any] = {}
    for key, value in table.items():
        placeholders = [name for name in dict.fromkeys(PLACEHOLDER.findall(key)) if name not in names]
        for chosen in product(*(members[placeholder] for placeholder in placeholders)):
            all_names = {**names, **dict(zip(placeholders, chosen, strict=True))}
            name = key.format(**all_names)
            if isinstance(value, Mapping):
                expanded[name] = _expand_keys(value, all_names, members, columns)
            elif name in order or not placeholders:
                expanded[name] = [figure for source in value for figure in _expand_source(source, all_names, members)]
    return dict(sorted(expanded.items(), key=lambda item: order.get(item[0], len(order))))


def _expand_source(source: Mapping[str, Any], names: Mapping[str, str], members: Members) -> Iterator[dict[str, Any]]:
    """Yield a figure for each combination of the tables that its placeholders stand for."""
    allowed: Mapping[str, Sequence[str]] = source.get("only", {})
    if any(names[placeholder] not in chosen for placeholder, chosen in allowed.items()):
        return
    placeholders = list(dict.fromkeys(PLACEHOLDER.findall(" ".join(source.get(key, "") for key in FIGURE_KEYS))))
    default_label = ", ".join(f"{{{placeholder}}}" for placeholder in placeholders)
    for chosen in product(*(members[placeholder][names[placeholder]] for placeholder in placeholders)):
        by_placeholder = dict(zip(placeholders, chosen, strict=True))
        figures = {key: member["figure"] for key, member in by_placeholder.items()}
        labels = {key: member.get("label", "") for key, member in by_placeholder.items()}
        label = source.get("label", default_label).format(**labels)
        expanded = {key: value for key, value in source.items() if key != "only"}
        expanded |= {key: source[key].format(**figures) for key in FIGURE_KEYS if key in source}
        expanded |= {"label": ", ".join(filter(None, label.split(", ")))}
        expanded |= {key: _join_lists([source, *chosen], key) for key in ("parts", "departures")}
        yield expanded


def _join_lists(tables: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    """The lists under a key of tables, one after another."""
    return [item for table in tables for item in table.get(key, ())]
