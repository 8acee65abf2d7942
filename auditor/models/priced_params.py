"""Parameters of a model for which its provider charges another price than the listed one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FEES = frozenset(
    {
        "audio",
        "container",
        "enablesearch",
        "functions",
        "inferencegeo",
        "mcpservers",
        "modalities",
        "performanceconfig",
        "plugins",
        "prediction",
        "searchparameters",
        "tools",
        "websearch",
        "websearchoptions",
    }
)
"""Parameters for which providers charge more than the tokens of one prompt and one answer; names in lower case without
underscores and hyphens."""
TIERS = frozenset({"servicetier", "speed"})
"""Providers' names of the tier in which a request is processed, in the same form; a text, or a table with its type."""
LISTED_TIERS = frozenset({"auto", "default", "on_demand", "standard", "standard_only"})
"""Tiers at the listed price of a token."""
CHEAPER_TIERS = frozenset({"flex"})


def iter_params(params: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path of names and the value of each parameter, at any depth."""
    for name, value in params.items():
        yield (*path, name), value
        if isinstance(value, Mapping):
            yield from iter_params(value, (*path, name))


def normalize_name(name: str) -> str:
    """A parameter's name in lower case without underscores and hyphens."""
    return name.replace("_", "").replace("-", "").lower()


def has_fee(name: str) -> bool:
    """Whether providers charge more for a parameter than the price of tokens."""
    return normalize_name(name) in FEES


def read_tier(name: str, value: object) -> str | None:
    """The tier that a parameter asks for, if it is not at the listed price; None for all other parameters."""
    tier = value.get("type") if isinstance(value, Mapping) else value
    is_tier = normalize_name(name) in TIERS and tier is not None and not isinstance(tier, Mapping)
    return str(tier) if is_tier and str(tier) not in LISTED_TIERS else None
