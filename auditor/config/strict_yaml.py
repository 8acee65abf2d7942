"""Parse YAML configuration with a strict subset of YAML 1.2: in YAML 1.1 the country code NO is false."""

from __future__ import annotations

import re
from typing import Any

import yaml

from auditor.errors import ConfigError
from auditor.input_files import raise_parse_error, require_storable

ALLOWED_TAGS = (None, "tag:yaml.org,2002:str")
"""Tags that a value may have, such as `!!str 1.10` for a text. Other tags change types or create objects."""


def _yaml_error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    """An error of the YAML parser at a position (`mark`) in the text."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _StrictLoader(yaml.SafeLoader):
    """Loader with the core scalars of YAML 1.2; it rejects aliases, duplicate keys and all tags but `!!str`."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Build a node of the document; raises an error for an alias or a tag."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.events.AliasEvent):
            raise _yaml_error("aliases are not allowed; write the value itself", event.start_mark)
        if getattr(event, "tag", None) not in ALLOWED_TAGS:  # `!!binary` and `!!timestamp` create objects
            raise _yaml_error("tags are not allowed; write the value as plain text", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Build a table; raises an error for a key that is no scalar, occurs twice, or has nothing after it.

        An empty value is null, so that `budget_usd:` would be no budget, and `direct:` no question.
        """
        seen_keys: set[str] = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _yaml_error("a key must be plain text", key_node.start_mark)
            if key_node.value in seen_keys:
                raise _yaml_error(f"the key '{key_node.value}' is used twice", key_node.start_mark)
            if isinstance(value_node, yaml.ScalarNode) and not value_node.value and value_node.tag.endswith(":null"):
                advice = "write a value after it, or {} for a table with its defaults, or remove it"
                raise _yaml_error(f"the key '{key_node.value}' is empty; {advice}", key_node.start_mark)
            seen_keys.add(key_node.value)
            key_node.tag = "tag:yaml.org,2002:str"  # as in TOML: a judge may be named 4
        return super().construct_mapping(node, deep=deep)


def _build_resolvers() -> dict[str, list[tuple[str, Any]]]:
    """Resolvers of plain scalars by first character: only true and false, decimal numbers, and null get a type."""
    resolvers: dict[str, list[tuple[str, Any]]] = {}
    for tag, pattern, first_characters in (
        ("tag:yaml.org,2002:bool", r"^(?:true|false)$", "tf"),
        ("tag:yaml.org,2002:int", r"^-?(?:0|[1-9][0-9]*)$", "-0123456789"),
        ("tag:yaml.org,2002:float", r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", "-0123456789"),
        ("tag:yaml.org,2002:null", r"^(?:null|~|)$", "n~\0"),
    ):
        for first_character in first_characters:
            resolvers.setdefault("" if first_character == "\0" else first_character, []).append(
                (tag, re.compile(pattern))
            )
    return resolvers


_StrictLoader.yaml_implicit_resolvers = _build_resolvers()


def parse_yaml(text: str, source_name: str) -> dict[str, Any]:
    """Parse a YAML text whose top level is a mapping.

    Raises:
        ConfigError: the text is not YAML, not a mapping or ambiguous; the message names `source_name` and the line.
    """
    try:
        data = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = error.problem or ""
        problem = f"{error.context}, {problem}" if problem.startswith("but ") else problem
        raise ConfigError(f"{source_name}{line}: not YAML: {problem}.", "Correct that line.") from None
    except yaml.reader.ReaderError as error:
        line = f"line {text.count(chr(10), 0, error.position) + 1}"
        character = f"the character U+{ord(text[error.position]):04X}"
        raise ConfigError(f"{source_name} {line}: {character} is not allowed in YAML.", "Remove it.") from None
    except (RecursionError, ValueError) as error:
        raise_parse_error(error, source_name, ConfigError)
    if not isinstance(data, dict):
        raise ConfigError(
            f"{source_name}: the file does not consist of keys and values, such as name: my-audit.",
            "Create a valid file with `auditor init`.",
        )
    require_storable(data, source_name, ConfigError)
    return data
