"""Base class of the models that a report consists of."""

from __future__ import annotations

from pydantic import ConfigDict

from auditor.config.base import DocumentedModel


class ReportModel(DocumentedModel):
    """Base class of all parts of a report: immutable, without extra keys, nan or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
