"""The page's templates: every value that enters one is escaped and passes the one sanitiser."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

from auditor.text_safety import escape_invisible


def create_environment() -> jinja2.Environment:
    """What all templates are read by."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("auditor.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_sanitize_printed_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _sanitize_printed_value(value: Any) -> Any:
    """What stands in the page for a value: sanitised when it is text, and an error when it is missing."""
    if value is None:
        raise ValueError("the template printed a missing value")
    return value if isinstance(value, Markup) or not isinstance(value, str) else escape_invisible(value)
