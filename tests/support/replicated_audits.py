"""A replication of EvalMORAAL with simulated models."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fixed_address import word_encoder

MODELS = ("knows-every-culture", "western-everywhere", "inconsistent")
N_CELLS = 48
STORED_NAME = f"simulated-rep-evalmoraal-{{survey}}-limit-{N_CELLS}"


def place_of(cell: dict[str, Any]) -> tuple[str, str, str]:
    """Table, row and column of the published figure of a cell in JSON."""
    return cell["published"]["table"], cell["published"]["row"], cell["published"]["column"]


def list_missing(
    cells: Iterable[dict[str, Any]], tables: Collection[str], allowed: Collection[str]
) -> list[tuple[str, ...]]:
    """Places and details of the cells of these tables that have no figure of ours, for a reason that is not allowed."""
    missing = [cell for cell in cells if cell["recomputed"] is None and cell["not_run"] not in allowed]
    return [(*place_of(cell), cell["detail"]) for cell in missing if cell["published"]["table"] in tables]


def write_models(path: Path, names: tuple[str, ...]) -> Path:
    tables = [f'[[models]]\nname = "{name}"\nmodel = "simulated/{name}"\n' for name in names]
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def replicate(
    folder: Path, *words: str, models: tuple[str, ...] = MODELS, models_file: Path | None = None, limit: int = N_CELLS
) -> CommandOutput:
    file = models_file or write_models(folder / "models.toml", models)
    storage = f"sqlite:///{folder}/replication.db"
    options = ("--models", str(file), "--limit", str(limit), "--storage", storage)
    with word_encoder():
        return auditor("replicate", "evalmoraal", *options, *words)


@dataclass(frozen=True)
class Experiment:
    """A finished experiment.

    Attributes:
        output: of the command with `--json`.
    """

    folder: Path
    output: dict[str, Any]

    @property
    def storage(self) -> str:
        return f"sqlite:///{self.folder}/replication.db"

    @property
    def audits(self) -> dict[str, str]:
        return {survey: STORED_NAME.format(survey=survey.lower()) for survey in ("WVS", "PEW")}

    def value(self, table: str, row: str, column: str, detail: str) -> float:
        place = (table, row, column, detail)
        [cell] = [cell for cell in self.output["cells"] if (*place_of(cell), cell["detail"]) == place]
        assert cell["recomputed"] is not None, cell
        if cell["published"]["value"] is None:
            assert cell["difference"] is None
        else:
            assert cell["difference"] == pytest.approx(cell["recomputed"]["value"] - cell["published"]["value"])
        return float(cell["recomputed"]["value"])
