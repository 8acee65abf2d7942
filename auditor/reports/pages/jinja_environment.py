"""Jinja environment of the report's templates, which escapes and sanitizes every value."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

from auditor.text_safety import escape_invisible


def create_environment() -> jinja2.Environment:
    """Create the environment for the package's templates. An undefined variable or a printed None is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("auditor.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_sanitize_printed_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _sanitize_printed_value(value: Any) -> Any:
    """Make invisible characters of a text visible; other values and markup are returned as they are.

    Raises:
        ValueError: the value is None.
    """
    if value is None:
        raise ValueError("the template printed a missing value")
    return value if isinstance(value, Markup) or not isinstance(value, str) else escape_invisible(value)
