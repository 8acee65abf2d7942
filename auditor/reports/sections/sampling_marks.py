"""Marks of figures that depend on sampling settings, where these are not the same for all models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from auditor.domain import Purpose
from auditor.reports.data.requests.sampling_settings import SamplingReport
from auditor.reports.document import Cell, Column

FLAG = "†"


class ModelRow(Protocol):
    """A row of the report about one model."""

    @property
    def model(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SamplingMarks:
    """The sampling settings of each model in words, by name; empty where they do not differ.

    Attributes:
        refusing_models: models whose servers refuse a setting of the configuration.
    """

    label_by_model: Mapping[str, str]
    refusing_models: Sequence[str] = ()

    @classmethod
    def of(cls, sampling: SamplingReport, purpose: Purpose) -> SamplingMarks:
        """The marks of the answers for one purpose."""
        return cls(sampling.labels(purpose), sampling.refusing_models(purpose))

    @property
    def columns(self) -> list[Column]:
        """A column with each model's settings; none where they do not differ."""
        return [Column("Sampling")] if self.label_by_model else []

    @property
    def derived(self) -> dict[str, Callable[[ModelRow], Cell]]:
        """The function that computes the column's cells, by its key."""
        return {"sampling": lambda row: self.label_by_model.get(row.model)}

    def cells(self, model: str) -> list[Cell]:
        """The column's cell for a model; none where the settings do not differ."""
        return [self.label_by_model.get(model)] if self.label_by_model else []

    def remark(self, figures: str) -> str:
        """A sentence for a caption: which figures are not comparable between models; empty where all are."""
        if not self.label_by_model:
            return ""
        return f" Sampling: settings as they were sent. {figures} of models with different settings are not comparable."

    def flag(self, label: str, model: str) -> str:
        """A label in a plot, with a sign if the model was asked with other settings than the configuration's."""
        return f"{label} {FLAG}" if model in self.refusing_models else label

    @property
    def flag_remark(self) -> str:
        """A sentence for a plot's caption that explains the sign; empty where all models are comparable."""
        return f" {FLAG} Asked with other sampling settings, so not comparable." if self.refusing_models else ""

    def mark(self, label: str, model: str) -> str:
        """A label in a sentence or a table, followed by the model's settings where they differ."""
        settings = self.label_by_model.get(model)
        return f"{label} ({settings})" if settings else label


NO_MARKS = SamplingMarks({})
"""Where all figures are comparable."""
