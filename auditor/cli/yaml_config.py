"""Convert a TOML configuration to YAML, with its comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

YAML_SUFFIXES = (".yaml", ".yml")
MAX_TABLE_LENGTH = 110
_TABLE = re.compile(r"\[(\[)?([\w-]+)\]\]?$")
"""The heading of a table, or of a table in a list."""
_SETTING = re.compile(r"([\w-]+) = (.*)$")


def convert_to_yaml(text: str) -> str:
    """Convert a configuration, as `auditor init` writes it, to YAML; comments stay, also those that hold settings.

    Each setting and each heading of a table begins on a line of its own; tables are not nested by their headings.
    """
    return "\n".join(_convert_lines(_join_values(text.splitlines()))) + "\n"


def _join_values(lines: list[str]) -> list[str]:
    """Join the lines of each value that has several."""
    joined: list[str] = []
    is_open = False
    for line in lines:
        joined = [*joined[:-1], f"{joined[-1]} {line.strip()}"] if is_open else [*joined, line]
        is_open = _SETTING.match(joined[-1]) is not None and _parse_setting(joined[-1]) is None
    return joined


def _convert_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines in YAML. Settings of a table are indented; the first of a table in a list begins with a dash."""
    states = {"": _Layout(), "# ": _Layout()}  # of settings, and of settings in comments
    for line in lines:
        mark = "# " if line.startswith("# ") else ""
        layout, content = states[mark], line.removeprefix(mark)
        if table := _TABLE.match(content):
            yield from (f"{mark}{heading}" for heading in layout.begin_table(table[2], in_list=bool(table[1])))
        elif setting := _parse_setting(content):
            yield f"{mark}{layout.indent()}{setting}"
        elif line.startswith("#") and states[""].table:
            yield f"  {line}"
        else:
            yield line


class _Layout:
    """Where the lines of a table begin.

    Attributes:
        table: the current table; empty before the first.
        in_list: whether it is one of a list.
        is_first: whether no setting of the table was written yet.
    """

    def __init__(self) -> None:
        self.table, self.in_list, self.is_first = "", False, True

    def begin_table(self, name: str, *, in_list: bool) -> list[str]:
        """Begin a table; returns its heading, which a list has once."""
        is_continued = in_list and self.in_list and self.table == name
        self.table, self.in_list, self.is_first = name, in_list, True
        return [] if is_continued else [f"{name}:"]

    def indent(self) -> str:
        """What stands before the next setting of the table."""
        dash, self.is_first = ("- " if self.is_first else "  ") if self.in_list else "", False
        return f"  {dash}" if self.table else ""


def _parse_setting(line: str) -> str | None:
    """A setting in YAML, with its comment; None if the line is not a setting in TOML."""
    match = _SETTING.match(line)
    if match is None:
        return None
    # A comment may follow the value, and a text in it may hold "#": the shortest part that is TOML is the value.
    for end in [*(comment.start() for comment in re.finditer(r"\s+#", match[2])), len(match[2])]:
        try:
            value = tomllib.loads(f"value = {match[2][:end]}")["value"]
        except tomllib.TOMLDecodeError:
            continue
        return f"{match[1]}:{_format_setting_value(value)}{match[2][end:]}"
    return None


def _format_setting_value(value: Any) -> str:
    """A value after its key: on the same line, or with one line for each member of a table that is too long."""
    on_one_line = f" {_format_value(value)}"
    if not isinstance(value, dict) or len(on_one_line) <= MAX_TABLE_LENGTH:
        return on_one_line
    return "".join(f"\n  {key}: {_format_value(child)}" for key, child in value.items())


def _format_value(value: Any) -> str:
    """A value in YAML's flow style; numbers, texts and true are as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key}: {_format_value(child)}' for key, child in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
