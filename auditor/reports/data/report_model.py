"""Base class of the models that a report consists of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ReportModel(BaseModel):
    """Base class of all parts of a report: immutable, without extra keys, nan or infinity."""

    # Validators are built at first use: commands that print a part of a report need few of them.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, defer_build=True
    )
