"""Tables run with simulated models: figures against numpy on the stored records, and why figures are missing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import numpy as np
import pytest

from auditor.errors import UsageError
from auditor.metrics.estimate import Estimate
from auditor.models.gateway import Gateway
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.experiment import FigureSource
from auditor.replications.joining import join_figures, load_measured_audits, match_models
from auditor.replications.presets import Paper, load_paper
from auditor.reports.data.replication import NotRun, RecomputedCell
from auditor.run import open_audit
from auditor.surveys import region_of
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fixed_address import word_encoder

MODELS = ("knows-every-culture", "western-everywhere", "inconsistent")
N_CELLS = 48
KINDS = ("binary", "gradient", "outlier")


def write_models(path: Path, names: tuple[str, ...]) -> Path:
    tables = [f'[[models]]\nname = "{name}"\nmodel = "simulated/{name}"\n' for name in names]
    header = 'name = "simulated-models"\nsurvey = { source = "pew2013-sample" }\n'
    path.write_text(header + "\n".join(tables), encoding="utf-8")
    return path


def replicate(folder: Path, *words: str, models: tuple[str, ...] = MODELS) -> CommandOutput:
    file = write_models(folder / "models.toml", models)
    storage = f"sqlite:///{folder}/replication.db"
    options = ("--models", str(file), "--limit", str(N_CELLS), "--storage", storage)
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

    def value(self, table: str, row: str, column: str, detail: str) -> float:
        [cell] = [
            cell
            for cell in self.output["cells"]
            if (cell["published"]["table"], cell["published"]["row"], cell["published"]["column"], cell["detail"])
            == (table, row, column, detail)
        ]
        assert cell["recomputed"] is not None, cell
        assert cell["difference"] == pytest.approx(cell["recomputed"]["value"] - cell["published"]["value"])
        return float(cell["recomputed"]["value"])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("replication")
    result = replicate(folder, "--json")
    assert result.returncode == 0, result.stderr
    return Experiment(folder, json.loads(result.stdout))


class Records:
    """The stored scores and people's of one audit, read with sqlite3."""

    def __init__(self, folder: Path, survey: str) -> None:
        name = f"simulated-rep-evalmoraal-{survey.lower()}"
        with closing(sqlite3.connect(folder / "replication.db")) as db:
            self.rows = db.execute(
                "select s.model, s.country, s.topic, s.method, s.score, s.variance, c.score from score s "
                "join audit a on a.id = s.audit_id "
                "join survey_cell c on c.audit_id = a.id and c.country = s.country and c.topic = s.topic "
                "where a.name = ?",
                [name],
            ).fetchall()

    def column(self, model: str, method: str, index: int, *, western: bool | None = None) -> list[float]:
        return [
            row[index]
            for row in sorted(self.rows)
            if (row[0], row[3]) == (model, method) and western in (None, region_of(row[1]) == "Western")
        ]

    def r(self, model: str, method: str = "direct", *, western: bool | None = None) -> float:
        scores, people = (self.column(model, method, index, western=western) for index in (4, 6))
        return float(np.corrcoef(scores, people)[0, 1])


@pytest.mark.parametrize("survey", ["WVS", "PEW"])
def test_planted_figures_are_those_of_numpy_on_the_stored_scores(experiment: Experiment, survey: str) -> None:
    records = Records(experiment.folder, survey)
    direct = {model: records.r(model) for model in MODELS}
    deltas = [direct[model] - records.r(model, "logprob") for model in MODELS]
    value = experiment.value
    assert len(records.column(MODELS[0], "direct", 4)) == N_CELLS
    assert value("1", "20 models", "delta r, mean", survey) == pytest.approx(np.mean(deltas))
    assert value("1", "20 models", "delta r, lowest", survey) == pytest.approx(min(deltas))
    assert value("1", "20 models", "delta r, highest", survey) == pytest.approx(max(deltas))
    variances = np.concatenate([records.column(model, "direct", 5) for model in MODELS])
    assert value("variance", "all cells", "mean", survey) == pytest.approx(variances.mean())
    assert value("variance", "all cells", "standard deviation", survey) == pytest.approx(variances.std(ddof=1))
    means = [np.mean(records.column(model, "direct", 5)) for model in MODELS]
    expected = np.corrcoef(means, list(direct.values()))[0, 1]
    assert value("variance", "20 models", "r with alignment", survey) == pytest.approx(expected)
    western, others = (
        np.mean([records.r(model, western=is_western) for model in MODELS]) for is_western in (True, False)
    )
    assert value("regions", "20 models", "Western", survey) == pytest.approx(western)
    assert value("regions", "20 models", "non-Western", survey) == pytest.approx(others)
    assert value("regions", "20 models", "gap", survey) == pytest.approx(western - others)
    assert western - others > 0.1, "the model that answers as Western people do was planted"


@pytest.mark.parametrize("survey", ["WVS", "PEW"])
def test_conflicts_are_counted_by_cell_and_by_pair(experiment: Experiment, survey: str) -> None:
    records = Records(experiment.folder, survey)
    scores = np.array([records.column(model, "direct", 4) for model in MODELS])
    differences = np.array([scores[i] - scores[j] for i, j in combinations(range(len(MODELS)), 2)])
    is_conflict = np.abs(differences) >= 0.38 - 1e-9
    n_cells, n_pairs = is_conflict.any(axis=0).sum(), is_conflict.sum()
    assert n_cells < n_pairs
    assert experiment.value("conflicts", "both surveys", "conflicts", f"{survey}, by cell") == n_cells
    assert experiment.value("conflicts", "both surveys", "conflicts", f"{survey}, by pair") == n_pairs
    for unit in ("by cell", "by pair"):
        kinds = [experiment.value("conflicts", "kinds", kind, f"{survey}, {unit}") for kind in KINDS]
        assert sum(kinds) == pytest.approx(1)


def test_a_second_run_makes_no_call(experiment: Experiment) -> None:
    with mock.patch.object(Gateway, "complete", side_effect=AssertionError("a call was sent")):
        result = replicate(experiment.folder, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == experiment.output


def test_the_option_as_compares_a_model_with_a_published_one(experiment: Experiment) -> None:
    result = replicate(experiment.folder, "--json", "--as", "western-everywhere=GPT-4o")
    report = open_audit("simulated-rep-evalmoraal-pew", storage=experiment.storage).report()
    [agreement] = [row.agreement.value for row in report.peer_agreement if row.model == "western-everywhere"]
    mapped = Experiment(experiment.folder, json.loads(result.stdout))
    assert mapped.value("peer", "GPT-4o", "A", "PEW, western-everywhere") == agreement
    highest = experiment.value("peer", "GPT-4o", "A", "PEW, highest of our models")
    assert highest == max(row.agreement.value or 0.0 for row in report.peer_agreement) != agreement


def test_the_document_has_a_mark_in_every_row_and_the_heat_maps(experiment: Experiment) -> None:
    page = experiment.folder / "replication.html"
    assert replicate(experiment.folder, "-o", str(page)).returncode == 0
    text = page.read_text("utf-8")
    for phrase in ("other definition", "r by country", "Mean absolute error by topic", "Distribution of errors"):
        assert phrase in text
    assert {cell["mark"] for cell in experiment.output["cells"]} == {"other_definition", "not_run"}
    contents = text[text.index("<nav") : text.index("</nav>")]
    for name in (">Peer<", "WVS: Figures over models", "PEW: Figures over models", "Departures"):
        assert name in contents
    heat_maps = text[: text.index("r by country")].rindex("<details")
    assert " open>" in text[heat_maps : text.index(">", heat_maps) + 1]
    counts = [cell for cell in experiment.output["cells"] if cell["published"]["column"] == "conflicts"]
    differences = [f"{int(cell['recomputed']['value']) - 348:+}".replace("-", "\u2212") for cell in counts]
    assert [difference for difference in differences if f"<td>{difference}</td>" not in text] == []


# --- why there is no figure ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(experiment: Experiment) -> list[MeasuredAudit]:
    names = {survey: f"simulated-rep-evalmoraal-{survey.lower()}" for survey in ("WVS", "PEW")}
    return load_measured_audits(experiment.storage, names)


def join(
    measured: list[MeasuredAudit], table: str, column: str, paper: Paper | None = None, **model_by_published: str
) -> list[RecomputedCell]:
    """The cells of a column of a table; `model_by_published` is our model by published model."""
    cells, _ = join_figures(paper or load_paper("evalmoraal"), table, measured, model_by_published)
    return [cell for cell in cells if cell.published.column == column]


def not_run(cells: list[RecomputedCell]) -> set[NotRun | None]:
    return {cell.not_run for cell in cells}


def test_a_figure_of_a_survey_without_an_audit_is_not_run_until_it_has_one(measured: list[MeasuredAudit]) -> None:
    column = "r with alignment, PEW"
    assert not_run(join(measured[:1], "peer", column)) == {"no_audit"}
    assert not_run(join(measured, "peer", column)) == {None}


def test_a_figure_over_models_is_not_run_until_there_are_enough(measured: list[MeasuredAudit], tmp_path: Path) -> None:
    result = replicate(tmp_path, "--table", "variance", "--json", models=MODELS[:2])
    assert result.returncode == 0, result.stderr
    cells = [cell for cell in json.loads(result.stdout)["cells"] if cell["published"]["column"] == "r with alignment"]
    assert {cell["not_run"] for cell in cells} == {"too_few_models"}
    assert not_run(join(measured, "variance", "r with alignment")) == {None}


def test_a_figure_without_a_value_is_not_run_until_the_report_has_one(measured: list[MeasuredAudit]) -> None:
    without_conflicts = [
        MeasuredAudit(
            audit.name,
            audit.config,
            audit.report.model_copy(
                update={
                    "panel": audit.report.panel.model_copy(update={"fleiss_kappa": Estimate(None, 0, reason="none")})
                }
            ),
        )
        for audit in measured
    ]
    [cell, *_] = join(without_conflicts, "peer", "Fleiss kappa")
    assert (cell.not_run, cell.detail) == ("no_value", "WVS: none")
    assert not_run(join(measured, "peer", "Fleiss kappa")) == {None}


def test_a_figure_of_one_model_is_not_run_until_a_model_is_compared_with_it(measured: list[MeasuredAudit]) -> None:
    paper = load_paper("evalmoraal")
    tables = tuple(
        table.model_copy(
            update={
                "rows": tuple(
                    row.model_copy(update={"figures": {"A": (FigureSource(model_figure="peer_agreement"),)}})
                    for row in table.rows
                )
            }
        )
        for table in paper.tables
        if table.id == "peer"
    )
    only_models = paper.model_copy(update={"tables": tables})
    assert not_run(join(measured, "peer", "A", only_models)) == {"no_counterpart"}
    filled = join(measured, "peer", "A", only_models, **{"GPT-4o": "inconsistent"})
    assert not_run(filled) == {None}
    assert {cell.detail for cell in filled} == {"WVS, inconsistent", "PEW, inconsistent"}


def test_a_table_of_released_scores_is_run_by_them_only(measured: list[MeasuredAudit]) -> None:
    """That they fill it is tested with the recorded results."""
    cells, _ = join_figures(load_paper("evalmoraal"), None, measured, {})
    by_table: Mapping[str, set[NotRun | None]] = {
        table: {cell.not_run for cell in cells if cell.published.table == table}
        for table in ("log-probability", "ramezani-xu", "1", "conflicts")
    }
    assert by_table["log-probability"] == by_table["ramezani-xu"] == {"recorded_only"}
    assert by_table["1"] == by_table["conflicts"] == {None}


def test_every_reason_has_words_and_a_test() -> None:
    from auditor.reports.sections.replication import NOT_RUN

    assert set(NOT_RUN) == set(get_args(NotRun))
    names = ("test_joining.py", "test_recorded.py", "test_trials.py")
    source = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in names)
    assert [reason for reason in get_args(NotRun) if f'"{reason}"' not in source] == []


@pytest.mark.parametrize(
    ("pairs", "message"),
    [({"absent": "GPT-4o"}, "no audited model 'absent'"), ({"a": "GPT-9"}, "no published model 'GPT-9'.*PaLM-2")],
)
def test_unknown_models_are_refused(pairs: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        match_models(load_paper("evalmoraal"), ["a", "b"], pairs)


def test_models_of_equal_names_are_compared() -> None:
    assert match_models(load_paper("evalmoraal"), ["GPT-4", "mine"], {"mine": "GPT-4o"}) == {
        "GPT-4": "GPT-4",
        "GPT-4o": "mine",
    }
