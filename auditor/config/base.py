"""Base class of all tables of a configuration file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ConfigSection(BaseModel):
    """A table of the file: frozen, strict about its keys, and without infinite numbers, which JSON has not."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)
