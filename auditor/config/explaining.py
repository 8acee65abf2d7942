"""What is wrong with a configuration, in words: where it stands, what it is, and the nearest key that is known."""

from __future__ import annotations

import re
import typing
from typing import Any

import pydantic
from pydantic import BaseModel

from auditor.errors import did_you_mean


def explain(error: pydantic.ValidationError, data: Any, root: type[BaseModel]) -> str:
    """Everything that is wrong, a line each.

    Args:
        error: as raised by the validation of `root`.
        data: what was validated, for the names of list items.
        root: the model of the whole.
    """
    found: list[dict[str, Any]] = [dict(e) for e in error.errors(include_url=False)]
    # Where a word or a table is allowed, pydantic complains about both; the table's complaint says more.
    told = [
        e for e in found if e["type"] != "literal_error" or all(o is e or o["loc"][0] != e["loc"][0] for o in found)
    ]
    problems = [_explain_one(e, data, root) for e in told or found]
    return "\n  also: ".join(dict.fromkeys(problems))


def _explain_one(problem: dict[str, Any], data: Any, root: type[BaseModel]) -> str:
    loc = [part for part in problem["loc"] if not _is_union_tag(part)]
    where = _dotted(loc, data)
    if problem["type"] == "extra_forbidden":
        known = list(_section_at(problem["loc"], root).model_fields)
        hint = did_you_mean(str(loc[-1]), known, f"Known here: {', '.join(sorted(known))}.")
        return f"unknown key '{where}'. {hint}"
    if problem["type"] == "missing":
        return f"the key '{where}' is missing. Add it."
    if str(loc[-1:]) == "['api_key']":
        return f"'{where}' must name an environment variable, as in \"os.environ/OPENAI_API_KEY\", never be the key."
    if problem["type"] == "string_pattern_mismatch":
        meaning = _section_at(problem["loc"], root).model_fields[str(loc[-1])].description
        return f"'{where}': {problem['input']!r} will not do. {meaning}"
    message = re.sub(r"^Value error, ", "", problem["msg"])
    return f"'{where}': {message}" if where else message


def _is_union_tag(part: object) -> bool:
    return isinstance(part, str) and bool(re.search(r"[\[(]", part))


def _dotted(loc: list[Any], data: Any) -> str:
    """`models[1 'gpt'].timeout_s`: list items carry their name, since people do not count tables."""
    text, here = "", data
    for part in loc:
        here = here[part] if isinstance(here, (dict, list)) and _has(here, part) else None
        if isinstance(part, int):
            name = here.get("name") if isinstance(here, dict) else None
            text += f"[{part + 1}{f' {name!r}' if name else ''}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def _has(value: dict[str, Any] | list[Any], part: Any) -> bool:
    return part in value if isinstance(value, dict) else isinstance(part, int) and part < len(value)


def _section_at(loc: tuple[Any, ...], root: type[BaseModel]) -> type[BaseModel]:
    """The section that a location points into."""
    section = root
    for part in loc[:-1]:
        field = section.model_fields.get(part) if isinstance(part, str) else None
        section = (_section_in(field.annotation) if field else None) or section
    return section


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's type is or holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in typing.get_args(annotation) if (found := _section_in(arg))), None)
