"""Import of an official file, an audit on the imported survey, its report and the nonresponse experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.errors import SurveyError
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.surveys import load_survey_facts
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.known import known
from tests.surveys import official_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `my_wvs.csv`, imported from an official file."""
    monkeypatch.chdir(tmp_path)
    official_files.write_csv(tmp_path / "official.csv", official_files.wvs_columns(300))
    succeed("surveys", "import", "official.csv", "-o", "my_wvs.csv", cwd=tmp_path)
    return tmp_path


def run(server: FakeServer, nonresponse: str) -> None:
    """Run an audit on the imported survey with one treatment of nonresponse."""
    topics = ["homosexuality", "divorce", "abortion", "suicide"]
    survey: dict[str, Any] = {"source": "my_wvs.csv", "topics": topics, "nonresponse": nonresponse}
    run_audit(config(server.url, models=2, judges=[], survey=survey, name="own"), storage="sqlite:///auditor.db")


def test_an_audit_runs_on_an_imported_survey(server: FakeServer, folder: Path) -> None:
    run(server, "bounds")
    report = open_audit("own", storage="sqlite:///auditor.db").report()
    facts = known(load_survey_facts("my_wvs.csv"))
    assert (report.audit.survey.survey.name, report.audit.survey.asked) == ("my_wvs", 16)
    assert report.ceiling[0].reliability.value == facts.reliability.reliability
    assert {row.ceiling for row in report.alignment} == {facts.reliability.ceiling}
    assert report.nonresponse is not None
    assert {b.n for b in report.nonresponse.bounds} == {16}
    for bound, row in zip(report.nonresponse.bounds, report.alignment, strict=True):
        assert known(bound.mae_best) <= known(row.mae.value) <= known(bound.mae_worst)
    text = render_report(report, "markdown")
    assert "A perfect model is expected to reach at most r = " in text
    assert "MAE at worst" in text


def test_the_experiment_recomputes_every_figure(server: FakeServer, folder: Path) -> None:
    run(server, "drop")
    experiment_command = succeed("experiment", "nonresponse", "own", "--json", cwd=folder)
    experiment = json.loads(experiment_command.stdout)
    treatments = ["as audited", "drop", "neutral", "low", "high", "impute"]
    assert [t["treatment"] for t in experiment["treatments"]] == treatments
    assert experiment["not_possible"] == {}
    facts = known(load_survey_facts("my_wvs.csv"))
    scores = open_audit("own", storage="sqlite:///auditor.db").scores()
    for treatment, name in (("neutral", "neutral"), ("low", "low"), ("high", "high"), ("impute", "imputed")):
        rows = next(t for t in experiment["treatments"] if t["treatment"] == treatment)["alignment"]
        for row in rows:
            pairs = [
                (score, getattr(facts.by_cell[cell], name))
                for (model, *country_and_topic, _), score in scores.items()
                if model == row["model"]
                for cell in [next(c for c in facts.by_cell if list(c) == country_and_topic)]
            ]
            model_scores, survey_scores = np.array(pairs, dtype=float).T
            assert row["pearson_r"] == pytest.approx(stats.pearsonr(model_scores, survey_scores).statistic)
            assert row["mae"] == pytest.approx(np.abs(model_scores - survey_scores).mean())
    has_one_ranking = len({tuple(t["ranking"]) for t in experiment["treatments"]}) == 1
    assert experiment["ranking_holds"] is has_one_ranking
    printed_experiment = auditor("experiment", "nonresponse", "own", cwd=folder, COLUMNS="160")
    assert {"MAE", "worst"} <= set(printed_experiment.stdout.split())
    assert "The ranking of models by MAE" in printed_experiment.stdout


def test_without_respondents_each_treatment_has_a_reason(server: FakeServer, folder: Path) -> None:
    run(server, "neutral")
    request_count = len(server.requests)
    for suffix in (".facts.json", ".csv", ".survey.toml"):
        (folder / f"my_wvs{suffix}").unlink()
    experiment_command = auditor("experiment", "nonresponse", "own", "--json", cwd=folder)
    experiment = json.loads(experiment_command.stdout)
    not_possible = {"drop", "neutral", "low", "high", "impute"}
    assert (experiment["ranking_holds"], set(experiment["not_possible"])) == (None, not_possible)
    assert "'my_wvs.csv' is neither a built-in survey nor an existing file" in experiment["not_possible"]["drop"]
    report = open_audit("own", storage="sqlite:///auditor.db").report()
    assert "'my_wvs.csv' is neither a built-in survey nor an existing file" in str(report.ceiling[0].reliability.reason)
    assert len(server.requests) == request_count


def test_an_unavailable_treatment_is_refused_before_the_first_call(server: FakeServer, folder: Path) -> None:
    survey = {"source": "pew2013-sample", "nonresponse": "impute"}
    with pytest.raises(SurveyError, match=r"'survey\.nonresponse' says\. Import the official file"):
        run_audit(config(server.url, survey=survey), storage="sqlite:///auditor.db")
    assert server.requests == []


def test_a_custom_grouping_is_stored_with_the_audit(server: FakeServer, folder: Path) -> None:
    (folder / "groups.csv").write_text("country,region\nGermany,North\nNigeria,South\nTaiwan,South\n")
    survey = {"source": "my_wvs.csv", "topics": ["divorce", "suicide"], "regions": "groups.csv"}
    run_audit(config(server.url, models=2, judges=[], survey=survey, name="own"), storage="sqlite:///auditor.db")
    request_count = len(server.requests)
    (folder / "groups.csv").unlink()
    regions = open_audit("own", storage="sqlite:///auditor.db").report().regions
    assert (regions.grouping, regions.ungrouped) == ("groups.csv", ["Northern Ireland"])
    assert [(r.region, r.countries) for r in regions.rows[:2]] == [("North", 1), ("South", 2)]
    assert [(g.first, g.second, g.mae_gap.ci_low) for g in regions.gaps] == [("North", "South", None)] * 2
    # A changed grouping needs no request.
    survey["regions"] = "un_m49"
    run_audit(config(server.url, models=2, judges=[], survey=survey, name="own"), storage="sqlite:///auditor.db")
    regions = open_audit("own", storage="sqlite:///auditor.db").report().regions
    assert [r.region for r in regions.rows[:3]] == ["Africa", "Asia", "Europe"]
    assert len(server.requests) == request_count
    survey["regions"] = "groups.csv"
    with pytest.raises(
        SurveyError, match=r"'groups\.csv' is neither a built-in grouping of countries nor an existing file"
    ):
        run_audit(config(server.url, models=2, judges=[], survey=survey, name="own"), storage="sqlite:///auditor.db")
    assert len(server.requests) == request_count


def test_a_treatment_is_not_compared_with_itself(server: FakeServer, folder: Path) -> None:
    (folder / "plain.csv").write_text("country,topic,score\nJapan,divorce,0.2\nKenya,divorce,-0.4\nSpain,divorce,0.5\n")
    survey = {"source": "plain.csv"}
    run_audit(config(server.url, models=2, judges=[], survey=survey, name="plain"), storage="sqlite:///auditor.db")
    result = json.loads(auditor("experiment", "nonresponse", "plain", "--json", cwd=folder).stdout)
    assert [row["treatment"] for row in result["treatments"]] == ["as audited", "drop"]
    assert result["ranking_holds"] is None
    assert result["reason"] == "the audit’s own treatment, drop, is the only one that is possible with this survey"
