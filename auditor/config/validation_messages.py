"""Explain validation errors in plain words: which key, what it must be, what it is, and how to fix it.

Of pydantic's errors only the location and the messages of our own validators are used. The expected value is described
from the key's type, so that pydantic's wording never reaches the user, whatever the kind of error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, time
from math import isfinite
from typing import Any, get_args, get_origin

import pydantic
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from auditor.config.base import ConfigSection, read_field_descriptions
from auditor.config.value_checks import (
    Syntax,
    describe_type,
    field_types,
    find_field,
    format_examples,
    format_item_example,
    format_setting,
    key_type,
    type_at_step,
    union_members,
    unwrap_annotation,
)
from auditor.errors import PROBLEM_SEPARATOR, did_you_mean, pluralize
from auditor.text_safety import truncate_text

MAX_PROBLEMS = 10
"""Largest number of problems that a message lists; a wrong file may have one in every row."""
KNOWN_KEYS_PREFIX = "Known keys: "
MISSPELT_CUTOFF = 0.8
"""Similarity from which a key is taken for a misspelt one before other explanations are tried."""
MAX_TABLES = 3
"""Largest number of tables that are offered for a key that stands in the wrong one."""
FOREIGN_KEYS = {
    **dict.fromkeys(("base_url", "api_url", "api_base_url", "url", "endpoint", "host", "server"), "api_base"),
    **dict.fromkeys(("id", "model_id", "model_name", "provider", "deployment"), "model"),
    **dict.fromkeys(("retries", "max_retries", "num_retries"), "max_attempts"),
    **dict.fromkeys(("config", "litellm_params", "parameters"), "params"),
    **dict.fromkeys(("providers", "model_list", "targets"), "models"),
    **dict.fromkeys(("max_connections", "max_workers", "threads", "parallel"), "concurrency"),
    **dict.fromkeys(("timeout", "request_timeout"), "timeout_s"),
    **dict.fromkeys(("budget", "max_cost", "cost_limit"), "budget_usd"),
    **dict.fromkeys(("database", "database_url", "db"), "storage"),
    **dict.fromkeys(("n", "repeats", "num_samples", "epochs"), "samples"),
    **dict.fromkeys(("dataset", "data"), "survey"),
    **dict.fromkeys(("path", "file", "filename"), "source"),
    "system_prompt": "system",
}
"""Keys of other tools' configurations, and the standard key for each."""
REQUEST_PARAMS = {
    "headers": "extra_headers",
    **{
        name: name
        for name in (
            *("top_p", "top_k", "stop", "frequency_penalty", "presence_penalty", "logit_bias", "service_tier"),
            *("max_output_tokens", "max_completion_tokens", "extra_body", "extra_headers"),
        )
    },
}
"""Parameters of requests that other tools have beside the model's name, and their names in `params`."""
SECRET_KEYS = ("api_key", "api_base", "endpoint", "headers", "params", "storage")
"""Keys whose value no message shows, since it may be a password or a key."""


@dataclass(frozen=True)
class _ErrorLocation:
    """Location of an error in the settings.

    Attributes:
        path: keys and list indices that lead there.
        parent_type: type of the table or list that holds the value.
        expected_type: type that the value must have; None if the key is unknown.
        field_info: pydantic's field of the key.
        is_key: whether the key itself is wrong, not its value.
        setting: location of the setting that holds the value, if the value is an item of a list or of a free table.
    """

    path: tuple[str | int, ...]
    parent_type: Any
    expected_type: Any
    field_info: FieldInfo | None = None
    is_key: bool = False
    setting: _ErrorLocation | None = None

    @property
    def is_of_config(self) -> bool:
        """Whether the key is of a table of an audit's configuration; other files that are checked have no examples."""
        section = unwrap_annotation(self.parent_type)[0]
        is_table = isinstance(section, type) and issubclass(section, ConfigSection)
        return is_table or getattr(section, "__module__", "").startswith("auditor.config.")


def explain_validation_error(
    error: pydantic.ValidationError, data: Any, root_model: type[BaseModel], syntax: Syntax = "toml"
) -> str:
    """Explain all errors of a validation, one line each, at most `MAX_PROBLEMS`.

    Args:
        error: error raised by validating `root_model`.
        data: the validated data, for the names of list items.
        root_model: model of the whole file.
        syntax: format of the file, in which examples are written.
    """
    problems = _deduplicate_problems(
        _explain_problem(error_details, location, data, syntax, root_model)
        for error_details, location in _locate_specific_errors(error, root_model)
    )
    n_unlisted = len(problems) - MAX_PROBLEMS
    more = [f"{pluralize(n_unlisted, 'more problem')}."] if n_unlisted > 0 else []
    return PROBLEM_SEPARATOR.join([*problems[:MAX_PROBLEMS], *more])


def list_wrong_settings(error: pydantic.ValidationError, data: Any, root_model: type[BaseModel]) -> list[str]:
    """List the keys that a validation refused, such as `models[1 'gpt'].timeout_s`; arguments as above."""
    locations = [location for _, location in _locate_specific_errors(error, root_model)]
    return list(dict.fromkeys(_format_path(location.path, data) for location in locations if location.path))


def _locate_specific_errors(
    error: pydantic.ValidationError, root_model: type[BaseModel]
) -> list[tuple[dict[str, Any], _ErrorLocation]]:
    """Locate pydantic's errors, without those of tables and lists that have an error inside."""
    located_errors = [
        (dict(error_details), _locate_error(error_details["loc"], root_model))
        for error_details in error.errors(include_url=False)
    ]
    # If a word or a list is allowed, pydantic reports both; the errors within the list are more specific.
    # These are all proper prefixes of the errors' paths, that is, the tables and lists around them.
    outer_paths = {location.path[:n] for _, location in located_errors for n in range(len(location.path))}
    return [(error_details, location) for error_details, location in located_errors if location.path not in outer_paths]


def _deduplicate_problems(problems: Iterable[str]) -> list[str]:
    """Remove duplicate problems, and show each list of known keys only once, since it can be long."""
    listed_keys: set[str] = set()
    messages = []
    for problem in dict.fromkeys(problems):
        message, separator, known_keys = problem.partition(KNOWN_KEYS_PREFIX)
        messages.append(f"{message}Correct or remove it." if separator and known_keys in listed_keys else problem)
        listed_keys.add(known_keys)
    return messages


def _explain_problem(
    problem: dict[str, Any], location: _ErrorLocation, data: Any, syntax: Syntax, root_model: type[BaseModel]
) -> str:
    """Explain one of pydantic's errors in a sentence: the key, what is wrong, and how to fix it."""
    path, error_type = _format_path(location.path, data), problem["type"]
    if error_type == "extra_forbidden":
        if len(location.path) > 1 and location.path[-1] in root_model.model_fields:
            return (
                f"unknown key '{path}'. How to fix: '{location.path[-1]}' is a key of the whole file: move it to the "
                "beginning, before the first section."
            )
        known_keys = sorted(field_types(location.parent_type))
        install = " A probe of another package has to be installed." if location.path[:-1] == ("probes",) else ""
        hint = _suggest_key(str(location.path[-1]), known_keys, root_model)
        return f"unknown key '{path}'. How to fix: {hint}{install}"
    if error_type == "missing" and not isinstance(location.path[-1], int):
        addition = f"{describe_type(location.expected_type)}{_example(location, syntax)}"
        return f"the key '{path}' is missing. How to fix: Add {addition}."
    if "api_key" in location.path and error_type != "value_error":
        advice = 'How to fix: Write it as "os.environ/OPENAI_API_KEY".'
        return f"'{path}' must name an environment variable, not contain the key itself. {advice}"
    if error_type == "value_error":
        message = str(problem["ctx"]["error"])
        message = message if "How to fix:" in message else f"{message.rstrip('.')}. How to fix: Correct that value."
        return f"'{path}': {message}" if path else message
    if error_type == "missing":  # an item of a list with a given number of items
        location = _ErrorLocation(location.path[:-1], None, location.parent_type)
        path = _format_path(location.path, data)
    setting = _format_setting(problem["input"], is_secret=any(part in SECRET_KEYS for part in location.path))
    subject = f"the key '{path}'" if location.is_key else f"'{path}'" if path else "the file"
    if error_type == "string_pattern_mismatch" and location.field_info:
        section, key = unwrap_annotation(location.parent_type)[0], str(location.path[-1])
        description = _collapse_whitespace(read_field_descriptions(section).get(key))
        sentences = [f"{subject} cannot be {setting}.", description, f"How to fix: {_how_to_fix(location, syntax)}"]
        return " ".join(filter(None, sentences))
    expected = describe_type(location.expected_type)
    if isinstance(problem["input"], float) and not isfinite(problem["input"]):
        expected = expected.replace("a number", "a finite number", 1)
    return f"{subject} must be {expected}, not {setting}. How to fix: {_how_to_fix(location, syntax)}"


def _collapse_whitespace(text: str | None) -> str:
    """A text in one line with single spaces; empty for None."""
    return " ".join((text or "").split())


def _suggest_key(key: str, known_keys: list[str], root_model: type[BaseModel]) -> str:
    """The key that an unknown one probably stands for: a misspelt one, a parameter, another tool's, another table's.

    Without such a key, a list of all known keys of the table.
    """
    if misspelt := did_you_mean(key, known_keys, "", cutoff=MISSPELT_CUTOFF):
        return misspelt
    if "params" in known_keys and (param := REQUEST_PARAMS.get(key)):
        return f"Write it in 'params', for example params = {{ {param} = … }}."
    standard_key = FOREIGN_KEYS.get(key.lower().replace("-", "_"), key)
    if standard_key in known_keys:
        return f"Did you mean '{standard_key}'?"
    if tables := _list_tables_with(standard_key, root_model):
        return f"Set '{standard_key}' in the table {' or '.join(repr(table) for table in tables[:MAX_TABLES])}."
    return did_you_mean(key, known_keys, f"{KNOWN_KEYS_PREFIX}{', '.join(known_keys)}.")


def _list_tables_with(key: str, root_model: type[BaseModel]) -> list[str]:
    """Names of the tables of a file that have a key, such as `limits` or `probes.direct`."""
    annotations = field_types(root_model)
    probes = field_types(annotations.get("probes"))
    annotations |= {f"probes.{probe}": annotation for probe, annotation in probes.items()}
    return [
        name
        for name, annotation in annotations.items()
        if any(key in field_types(item_type) for item_type in _item_types(annotation))
    ]


def _item_types(annotation: Any) -> list[Any]:
    """The members of a type's union; of lists, the types of their items."""
    members = [unwrap_annotation(member)[0] for member in union_members(unwrap_annotation(annotation)[0])]
    return [get_args(member)[0] if get_origin(member) is list else member for member in members]


def _how_to_fix(location: _ErrorLocation, syntax: Syntax) -> str:
    """Advice to correct a key or value, with the key's default if it has a simple one."""
    field = location.field_info
    if location.is_key:
        return "Correct that key."
    example = _example(location, syntax)
    if field is None or field.is_required():
        return f"Correct that value{example}."
    default = field.default
    if not isinstance(default, (bool, int, float, str)):
        return f"Correct that value{example}, or remove the key."
    if example.endswith(f"example {format_setting(str(location.path[-1]), default, syntax)}"):
        return f"Correct that value{example} (the default), or remove the key."
    return f"Correct that value{example}, or remove the key: its default is {_format_setting(default)}."


def _example(location: _ErrorLocation, syntax: Syntax) -> str:
    """Valid settings, as `, for example samples = 5`; empty if the file is not the configuration of an audit."""
    setting = location if location.field_info else location.setting
    if setting is None or not setting.is_of_config:
        return ""
    if setting is not location and field_types(location.expected_type):  # a table in a list
        return f", for example {format_item_example(location.expected_type, syntax)}"
    examples = format_examples(setting.parent_type, str(setting.path[-1]), setting.expected_type, syntax)
    return f", for example {examples}" if examples else ""


def _format_setting(value: object, *, is_secret: bool = False) -> str:
    """Format a value as in the file, shortened; values that may be secrets are not shown."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return "this number" if is_secret else truncate_text(str(value))
        case str():
            return "this string" if is_secret else f'"{truncate_text(value)}"' if value else "an empty string"
        case list() | tuple():
            return f"a list of {pluralize(len(value), 'item')}" if value else "an empty list"
        case dict():
            return "a table"
        case date() | time():
            return f"the date or time {value}"
        case None:
            return "empty"
        case _:
            return "this"


def _locate_error(loc: tuple[str | int, ...], root_model: Any) -> _ErrorLocation:
    """Follow an error location of pydantic's along the types of the model; its path has no branches of unions."""
    location = _ErrorLocation((), None, root_model)
    for index, part in enumerate(loc):
        if part == "[key]" and index == len(loc) - 1:
            return _ErrorLocation(location.path, location.parent_type, key_type(location.parent_type), is_key=True)
        inner_type, is_step = type_at_step(location.expected_type, part, loc[index + 1 :])
        if is_step:
            location = _ErrorLocation(
                (*location.path, part),
                location.expected_type,
                inner_type,
                find_field(location.expected_type, part),
                setting=location if location.field_info else location.setting,
            )
        else:
            location = replace(location, expected_type=inner_type)
    return location


def _format_path(path: tuple[str | int, ...], data: Any) -> str:
    """Format a path such as `models[1 'gpt'].timeout_s`; list items show their name, which is easier to find."""
    text, node = "", data
    for part in path:
        node = _get_child(node, part)
        if isinstance(part, int):
            name = node.get("name") if isinstance(node, dict) else None
            text += f"[{part + 1}{f' {truncate_text(name)!r}' if isinstance(name, str) and name else ''}]"
        else:
            text += f".{truncate_text(part)}" if text else truncate_text(part)
    return text


def _get_child(parent: Any, part: str | int) -> Any:
    """Value under a key or at a list index; None if there is none."""
    if isinstance(parent, dict):
        return parent.get(part)
    return parent[part] if isinstance(parent, list) and isinstance(part, int) and part < len(parent) else None
