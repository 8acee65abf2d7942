"""Change settings of a configuration from the command line: `--set limits.budget_usd=5`."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from auditor.errors import ConfigError, did_you_mean
from auditor.text_safety import truncate_text

_BARE_TEXT = re.compile(r"[\w./:@+~-][\w ./:@+~-]*")
"""A text that may be written without quotes, such as `wvs7-sample` or `openai/gpt-4o`."""
_EXAMPLES = 'Write it as --set limits.budget_usd=5 or --set \'survey.countries=["Germany", "Japan"]\'.'


class Override(NamedTuple):
    """A changed setting: the keys that lead to it, its value, and the keys as they were written."""

    keys: tuple[str, ...]
    value: Any
    key_text: str


def parse_override(text: str) -> Override:
    """Parse `key=value`: keys as in TOML, with dots between them, and a value as in TOML; a text needs no quotes.

    Raises:
        ConfigError: it has no key or no value, or one that TOML does not allow. Values are not shown: they may be keys.
    """
    key_text, equals, value_text = text.partition("=")
    key_text, value_text = key_text.strip(), value_text.strip()
    if not equals:
        raise ConfigError(f"--set: '{truncate_text(text)}' has no value.", _EXAMPLES)
    keys = _parse_keys(key_text)
    if keys is None:
        raise ConfigError(f"--set: '{truncate_text(key_text)}' is not a key.", _EXAMPLES)
    try:
        document = tomllib.loads(f"value = {value_text}")
    except tomllib.TOMLDecodeError:
        document = {"value": value_text} if _BARE_TEXT.fullmatch(value_text) else {}
    if list(document) != ["value"]:
        raise ConfigError(f"--set {key_text}: the value is not valid TOML.", f"Put strings in quotes. {_EXAMPLES}")
    return Override(keys, document["value"], key_text)


def apply_overrides(settings: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """A copy of the settings of a configuration file with some of them changed.

    Tables of a list are addressed by their name, such as `models.gpt.temperature`; missing tables are added.

    Raises:
        ConfigError: a key leads through a value that is not a table, or to a name that is not in its list.
    """
    changed_settings = copy.deepcopy(settings)
    for override in overrides:
        _set_value(changed_settings, override)
    return changed_settings


def _parse_keys(key_text: str) -> tuple[str, ...] | None:
    """The keys of a dotted TOML key; None if it is not one."""
    try:
        node: Any = tomllib.loads(f"{key_text} = 0")
    except tomllib.TOMLDecodeError:
        return None
    keys = []
    while isinstance(node, dict):
        if len(node) != 1:
            return None
        [(key, node)] = node.items()
        keys.append(key)
    return tuple(keys) if node == 0 else None


def _set_value(settings: dict[str, Any], override: Override) -> None:
    """Change one setting; the tables and lists that lead to it are changed in place."""
    node: Any = settings
    for depth, key in enumerate(override.keys):
        is_last = depth == len(override.keys) - 1
        if isinstance(node, list):
            index = _find_item(node, key, override, depth)
            if is_last:
                node[index] = override.value
            node = node[index]
        elif not isinstance(node, dict):
            _raise_no_table(node, override, depth)
        elif is_last:
            node[key] = override.value
        else:
            node = node.setdefault(key, {})


def _find_item(tables: Sequence[Any], name: str, override: Override, depth: int) -> int:
    """Index of the table of this name in a list."""
    names = [str(table.get("name")) if isinstance(table, dict) else "" for table in tables]
    if name in names:
        return names.index(name)
    path = ".".join(override.keys[:depth])
    hint = did_you_mean(name, names, f"Names in it: {', '.join(filter(None, names)) or 'none'}.")
    raise ConfigError(f"--set {override.key_text}: the list '{path}' has no entry with the name '{name}'.", hint)


def _raise_no_table(value: Any, override: Override, depth: int) -> NoReturn:
    """Raise ConfigError: a value that is not a table has no keys."""
    path = ".".join(override.keys[:depth])
    hint = f"Set the whole value: --set {path}=…"
    if path == "judges" and value == "peers":
        hint = 'With judges = "peers", set a key of a model: --set models.NAME.temperature=0'
    raise ConfigError(f"--set {override.key_text}: '{path}' is a single value, so nothing can be set inside it.", hint)
