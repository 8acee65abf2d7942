"""The probe `distribution` as a user meets it: planted models, calls that were estimated, a second run, bad input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from sqlalchemy import func, select

from auditor.config import AuditConfig
from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.errors import AuditorError, ConfigError
from auditor.probes.distribution.figures.schema import DistributionGroupRow, DistributionModelRow, DistributionReport
from auditor.reports.data.build import build_report
from auditor.reports.data.gates.check import check_report, resolve_thresholds
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import load_planned_survey, run_audit
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from auditor.surveys import load_distributions, write_survey
from auditor.surveys.share_tables import import_share_table
from tests.support.cli_runner import auditor, succeed
from tests.support.opinion_surveys import COUNTRIES, TOPICS, write_opinion_survey, write_rows
from tests.support.stored_rows import find_part

PERSONAS = (
    "knows-every-culture", "one-opinion", "sharpened-opinions", "world-opinions", "equal-opinions", "first-option",
    "reversed-scale", "exaggerates-groups", "flattens-groups", "ignores-groups", "inverts-groups",
)  # fmt: skip
N_COUNTRIES, N_TOPICS = 5, 5
N_CELLS = N_COUNTRIES * N_TOPICS


def make_config(source: Path, probe: dict[str, Any], *personas: str, **changes: Any) -> AuditConfig:
    models = [{"name": name, "model": f"simulated/{name}"} for name in personas]
    section = {"source": str(source), "countries": COUNTRIES[:N_COUNTRIES], "topics": TOPICS[:N_TOPICS]}
    data = {"name": "simulated-opinions", "survey": section, "judges": [], "models": models, "seed": 3}
    return AuditConfig.model_validate({**data, "probes": {"distribution": probe}, **changes})


@dataclass(frozen=True)
class Audit:
    config: AuditConfig
    storage: str
    report: Report

    @property
    def distribution(self) -> DistributionReport:
        return find_part(self.report, DistributionReport)

    def row(self, model: str, mode: str) -> DistributionModelRow:
        return next(row for row in self.distribution.models if (row.model, row.mode) == (model, mode))

    def group(self, model: str) -> DistributionGroupRow:
        return next(row for row in self.distribution.groups if row.model == model)


def run(config: AuditConfig, storage: str) -> Audit:
    run_audit(config, storage=storage)
    with open_database(storage) as db:
        return Audit(config, storage, build_report(db, config.name))


def count_answers(storage: str) -> int:
    with open_database(storage) as db, db.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table_of(StoredAnswer))).scalar_one())


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of shares, of everyone and by sex."""
    return write_opinion_survey(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="module")
def stated(survey: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """All planted models, which state shares for everyone, for groups, and for the controls."""
    config = make_config(survey, {"modes": ["verbalized"], "groups": ["sex"]}, *PERSONAS)
    return run(config, f"sqlite:///{tmp_path_factory.mktemp('stated')}/a.db")


@pytest.fixture(scope="module")
def sampled(survey: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Three planted models that answer in every mode."""
    probe = {"modes": ["verbalized", "sampled", "tokens"]}
    config = make_config(survey, probe, "knows-every-culture", "one-opinion", "first-option")
    return run(config, f"sqlite:///{tmp_path_factory.mktemp('sampled')}/a.db")


def value_of(row: object, name: str) -> float:
    value = getattr(row, name).value
    assert value is not None, name
    return float(value)


def test_planted_shares_are_recovered(stated: Audit) -> None:
    rows = {row.model: row for row in stated.distribution.models}
    assert list(rows) == list(PERSONAS)
    assert all((row.n_cells, row.unusable) == (N_CELLS, 0) for row in rows.values())
    assert value_of(rows["knows-every-culture"], "skill") == pytest.approx(1, abs=0.02)
    assert value_of(rows["knows-every-culture"], "variance_ratio") == pytest.approx(1, abs=0.02)
    assert value_of(rows["one-opinion"], "variance_ratio") == pytest.approx(0, abs=1e-9)
    assert value_of(rows["sharpened-opinions"], "variance_ratio") < 0.8
    # The mean of all countries contains the cell, whose distance from it is smaller by 1 / N_COUNTRIES.
    assert value_of(rows["world-opinions"], "skill") == pytest.approx(1 - (1 - 1 / N_COUNTRIES) ** 2, abs=0.02)
    assert value_of(rows["world-opinions"], "country_gain") == pytest.approx(0, abs=1e-9)
    assert value_of(rows["knows-every-culture"], "country_gain") > 0.01
    assert value_of(rows["equal-opinions"], "skill") < 0
    assert value_of(rows["reversed-scale"], "skill") < value_of(rows["equal-opinions"], "skill")
    assert value_of(rows["first-option"], "order_effect") == pytest.approx(0.15, abs=0.01)
    assert value_of(rows["knows-every-culture"], "order_effect") == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("model", "factor"),
    # Shares that a factor makes negative count as 0, which takes a part of the planted gap.
    [
        ("exaggerates-groups", 1.52),
        ("knows-every-culture", 1.0),
        ("flattens-groups", 0.4),
        ("ignores-groups", 0.0),
        ("inverts-groups", -0.9),
    ],
)
def test_planted_gaps_between_groups_are_recovered(stated: Audit, model: str, factor: float) -> None:
    row = stated.group(model)
    assert value_of(row, "slope") == pytest.approx(factor, abs=0.05)
    specificity = value_of(row, "specificity")
    assert specificity == pytest.approx(0, abs=1e-9) if factor == 0 else specificity * factor > 0
    assert len(row.people_gaps) == len(row.model_gaps) == N_CELLS
    assert (value_of(row, "steering_gain") > 1e-9) == (factor > 0)


def test_groups_add_up_to_the_country_and_are_diverse_inside(stated: Audit) -> None:
    rows = {row.model: row for row in stated.distribution.dimensions}
    assert value_of(rows["ignores-groups"], "coherence") == pytest.approx(0, abs=1e-9)
    assert value_of(rows["one-opinion"], "coherence") > value_of(rows["knows-every-culture"], "coherence")
    assert value_of(rows["one-opinion"], "within_variance_ratio") == pytest.approx(0, abs=1e-9)
    assert value_of(rows["knows-every-culture"], "within_variance_ratio") == pytest.approx(1, abs=0.05)


def test_sampled_answers_show_diversity_and_the_favour_of_the_first_option(sampled: Audit) -> None:
    assert value_of(sampled.row("one-opinion", "sampled"), "collapse") == 1
    assert value_of(sampled.row("knows-every-culture", "sampled"), "variance_ratio") == pytest.approx(1, abs=0.2)
    assert value_of(sampled.row("knows-every-culture", "tokens"), "skill") == pytest.approx(1, abs=0.01)
    assert sampled.row("knows-every-culture", "tokens").mass == pytest.approx(1)
    for mode in ("sampled", "tokens"):
        assert value_of(sampled.row("first-option", mode), "order_effect") == pytest.approx(0.15, abs=0.04)
    assert [row.model for row in sampled.distribution.knowledge] == [model.name for model in sampled.config.models]


@pytest.mark.parametrize("name", ["stated", "sampled"])
def test_the_estimate_is_exact_and_a_second_run_makes_no_call(name: str, request: pytest.FixtureRequest) -> None:
    audit: Audit = request.getfixturevalue(name)
    survey = load_planned_survey(audit.config)
    forecast = estimate_audit(audit.config, survey, list(survey.asked_cells))
    n_recorded = count_answers(audit.storage)
    assert (forecast.calls.low, forecast.calls.expected, forecast.calls.high) == (n_recorded,) * 3
    n_answers = sum(row.answers for row in audit.distribution.models)
    assert n_answers == n_recorded
    assert sum(row.ok for row in audit.report.coverage.total) == n_answers
    if name == "sampled":  # in every mode
        repeated = run(audit.config, audit.storage)
        assert count_answers(audit.storage) == n_recorded
        assert repeated.distribution == audit.distribution


def test_thresholds_test_every_mode_and_shifts_in_both_directions(sampled: Audit) -> None:
    overrides = {"min_skill": 0.0, "min_variance_ratio": 0.5, "max_order_effect": 0.1}
    result = check_report(sampled.report, resolve_thresholds(sampled.config.check, overrides))
    failed = {(gate.name, gate.subject) for gate in result.gates if gate.verdict == "failed"}
    modes = ("verbalized", "sampled", "tokens")
    assert {("max_order_effect", f"first-option ({mode})") for mode in modes} <= failed
    assert {("min_variance_ratio", f"one-opinion ({mode})") for mode in modes} <= failed
    assert not any("knows-every-culture" in subject for _, subject in failed)


@pytest.mark.parametrize(
    ("probe", "changes", "message"),
    [
        ({"groups": ["sec"]}, {}, "the survey has no dimension 'sec'.*Did you mean 'sex'"),
        ({}, {"survey": {"source": "wvs7-sample"}}, "has no shares of answers.*auditor surveys import"),
        ({}, {"survey": None}, "the key 'survey' is missing.*the probe 'distribution'"),
        (
            {},
            {"models": [{"name": "old", "model": "replay/old", "answers": "log.csv"}]},
            "model 'old' replays recorded answers.*auditor import opinions",
        ),
        ({"samples": 5}, {}, "samples: 5 cannot be divided between 2 orders.*Set an even number"),
        ({"samples": 2}, {}, "at least 4"),
        ({"modes": ["sampled", "sampled"]}, {}, "modes: a value is listed twice"),
        ({"groups": ["sex"]}, {"language": "de"}, "no names of groups in the language 'de'"),
        (
            {},
            {"survey": {"source": "pew2013-sample"}, "language": "de"},
            "no answers without a scale in the language 'de'",
        ),
    ],
)
def test_bad_input_is_an_error_before_the_first_call(
    survey: Path, tmp_path: Path, probe: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    storage = f"sqlite:///{tmp_path}/a.db"
    with pytest.raises((AuditorError, ValueError), match=f"(?s){message}"):
        run_audit(make_config(survey, probe, "one-opinion", **changes), storage=storage)
    assert not (tmp_path / "a.db").exists()


def test_a_scale_of_too_many_answers_is_an_error(tmp_path: Path) -> None:
    columns = [f"p{position}" for position in range(1, 22)]
    table = write_rows(tmp_path / "t.csv", ["country", "topic", *columns], [["Japan", "divorce", *[1 / 21] * 21]])
    imported = import_share_table(table, 1, 21)
    write_survey(imported.survey, tmp_path / "survey.csv", shares=imported.distributions)
    config = make_config(Path(), {}, "one-opinion", survey={"source": str(tmp_path / "survey.csv")})
    with pytest.raises(ConfigError, match=r"the survey has 21 answers.*at most 20"):
        estimate_audit(config, load_planned_survey(config), [])


def test_choices_without_an_order_are_asked_in_english(tmp_path: Path) -> None:
    section = {"source": "pew2013-sample", "countries": ["Germany", "Japan"], "topics": ["gambling"]}
    probe = {"modes": ["verbalized", "sampled"], "samples": 4}
    audit = run(make_config(Path(), probe, "knows-every-culture", survey=section), f"sqlite:///{tmp_path}/a.db")
    assert not audit.distribution.is_ordered
    assert value_of(audit.row("knows-every-culture", "verbalized"), "total_variation") == pytest.approx(0, abs=0.01)
    assert audit.row("knows-every-culture", "sampled").unusable == 0


def write_two_scales(folder: Path) -> Path:
    """A survey with a scale of ten steps, one of four, and answers in words."""
    header = ["country", "topic", "n", "low", "high", "answers", *[f"p{position}" for position in range(1, 11)]]
    rng = np.random.default_rng(8)
    rows: list[list[object]] = []
    for country in COUNTRIES[:N_COUNTRIES]:
        for topic, low, high, answers, size in (
            ("divorce", 1, 10, "", 10), ("trust", 4, 1, "", 4), ("vote", "", "", "no|perhaps|yes", 3),
        ):  # fmt: skip
            shares = rng.dirichlet(np.ones(size)).round(6)
            shares[0] += 1 - shares.sum()
            rows.append([country, topic, 500, low, high, answers, *shares, *[""] * (10 - size)])
    imported = import_share_table(write_rows(folder / "t.csv", header, rows))
    write_survey(imported.survey, folder / "survey.csv", shares=imported.distributions)
    return folder / "survey.csv"


def test_topics_with_different_scales_are_asked_on_them_and_pooled(tmp_path: Path) -> None:
    """W1 of each cell on its own scale, divided by its range, by scipy; a model that knows people is at 0."""
    source = write_two_scales(tmp_path)
    section = {"source": str(source)}
    probe = {"modes": ["verbalized", "sampled"], "samples": 4}
    names = ("knows-every-culture", "equal-opinions", "reversed-scale")
    audit = run(make_config(Path(), probe, *names, survey=section), f"sqlite:///{tmp_path}/a.db")
    assert all(row.unusable == 0 for row in audit.distribution.models)
    assert value_of(audit.row("knows-every-culture", "verbalized"), "w1") == pytest.approx(0, abs=0.01)
    shares = load_distributions(source)
    expected: dict[str, list[float]] = {"equal-opinions": [], "reversed-scale": []}
    for cell, of_cell in shares.by_cell().items():
        positions = np.linspace(0, 1, len(shares.scale_of(cell.topic).points))
        people = np.array(of_cell.shares)
        for name, answer in (("equal-opinions", np.ones(len(people))), ("reversed-scale", people[::-1])):
            expected[name].append(wasserstein_distance(positions, positions, people, answer))
    for name, distances in expected.items():
        assert value_of(audit.row(name, "verbalized"), "w1") == pytest.approx(np.mean(distances), abs=0.005)
    equal = next(row for row in audit.distribution.baselines if row.name == "equal shares")
    assert equal.w1 == pytest.approx(np.mean(expected["equal-opinions"]), abs=1e-4)
    assert audit.distribution.scales == {"trust": ["4", "3", "2", "1"], "vote": ["no", "perhaps", "yes"]}
    sizes = {row.topic: len(row.people) for row in audit.distribution.cells}
    assert sizes == {"divorce": 10, "trust": 4, "vote": 3}
    assert "equal-opinions, stated shares, answers 4 to 1" in render_report(audit.report, "html")


def test_opinions_are_not_derived_without_the_survey(tmp_path: Path) -> None:
    """That its file is gone is a reason, and no finding."""
    survey = write_opinion_survey(tmp_path)
    storage = f"sqlite:///{tmp_path / 'a.db'}"
    config = make_config(survey, {"modes": ["verbalized"]}, "one-opinion")
    run(config, storage)
    succeed("verify", config.name, "--storage", storage)
    for file in tmp_path.glob(f"{survey.stem}.*"):
        file.unlink()
    verified = auditor("verify", config.name, "--storage", storage)
    assert verified.returncode == 4, verified.stderr
    assert "Results were not derived again" in verified.stderr
    assert ".." not in verified.stderr
