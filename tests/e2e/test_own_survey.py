"""An official file becomes a survey, an audit runs on it, and its report and the nonresponse experiment follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.errors import SurveyError
from auditor.reports.pages.markdown_report import render_markdown
from auditor.run import open_audit, run_audit
from auditor.surveys import load_survey_facts
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor
from tests.support.fake_server import FakeServer
from tests.surveys import official_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `my_wvs.csv`, imported from an official file."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.chdir(tmp_path)
    official_files.write_csv(tmp_path / "official.csv", official_files.wvs_columns(300))
    done = auditor("surveys", "import", "official.csv", "-o", "my_wvs.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(server: FakeServer, nonresponse: str) -> None:
    topics = ["homosexuality", "divorce", "abortion", "suicide"]
    survey: dict[str, Any] = {"source": "my_wvs.csv", "topics": topics, "nonresponse": nonresponse}
    run_audit(config(server.url, models=2, survey=survey, name="own"), storage="sqlite:///auditor.db")


def test_an_audit_runs_on_a_survey_of_ones_own(server: FakeServer, folder: Path) -> None:
    run(server, "bounds")
    report = open_audit("own", storage="sqlite:///auditor.db").report()
    facts = load_survey_facts("my_wvs.csv")
    assert facts is not None
    assert (report.audit.survey.name, report.audit.survey.asked) == ("my_wvs", 16)
    assert report.ceiling[0].reliability.value == facts.reliability.reliability
    assert {row.ceiling for row in report.alignment} == {facts.reliability.ceiling}
    assert report.nonresponse is not None
    assert {b.n for b in report.nonresponse.bounds} == {16}
    for bound, row in zip(report.nonresponse.bounds, report.alignment, strict=True):
        assert bound.mae_best is not None
        assert bound.mae_worst is not None
        assert row.mae is not None
        assert bound.mae_best <= row.mae <= bound.mae_worst
    text = render_markdown(report)
    assert "Even a perfect model is expected to reach no more than r = " in text
    assert "MAE at worst" in text


def test_the_experiment_recomputes_every_figure(server: FakeServer, folder: Path) -> None:
    run(server, "drop")
    done = auditor("experiment", "nonresponse", "own", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    part = json.loads(done.stdout)
    assert [t["treatment"] for t in part["treatments"]] == ["as audited", "drop", "neutral", "low", "high", "impute"]
    assert part["not_possible"] == {}
    facts = load_survey_facts("my_wvs.csv")
    assert facts is not None
    scores = open_audit("own", storage="sqlite:///auditor.db").scores()
    for treatment, name in (("neutral", "neutral"), ("low", "low"), ("high", "high"), ("impute", "imputed")):
        rows = next(t for t in part["treatments"] if t["treatment"] == treatment)["alignment"]
        for row in rows:
            pairs = [
                (score, getattr(facts.by_cell[cell], name))
                for (model, *place, _), score in scores.items()
                if model == row["model"]
                for cell in [next(c for c in facts.by_cell if list(c) == place)]
            ]
            x, y = np.array(pairs, dtype=float).T
            assert row["pearson_r"] == pytest.approx(stats.pearsonr(x, y).statistic)
            assert row["mae"] == pytest.approx(np.abs(x - y).mean())
    same = len({tuple(t["ranking"]) for t in part["treatments"]}) == 1
    assert part["ranking_holds"] is same
    shown = auditor("experiment", "nonresponse", "own", cwd=folder, COLUMNS="160")
    assert "MAE at worst" in shown.stdout
    assert "The ranking of models by r" in shown.stderr


def test_without_respondents_each_treatment_says_why_not(server: FakeServer, folder: Path) -> None:
    run(server, "neutral")
    asked = len(server.requests)
    for end in (".facts.json", ".csv", ".survey.toml"):
        (folder / f"my_wvs{end}").unlink()
    done = auditor("experiment", "nonresponse", "own", "--json", cwd=folder)
    part = json.loads(done.stdout)
    assert (part["ranking_holds"], set(part["not_possible"])) == (None, {"drop", "neutral", "low", "high", "impute"})
    assert "there is no survey 'my_wvs.csv'" in part["not_possible"]["drop"]
    report = open_audit("own", storage="sqlite:///auditor.db").report()
    assert "there is no survey 'my_wvs.csv'" in str(report.ceiling[0].reliability.reason)
    assert len(server.requests) == asked


def test_a_treatment_that_cannot_be_given_stops_before_the_first_call(server: FakeServer, folder: Path) -> None:
    survey = {"source": "pew2013-sample", "nonresponse": "impute"}
    with pytest.raises(SurveyError, match="'impute'"):
        run_audit(config(server.url, survey=survey), storage="sqlite:///auditor.db")
    assert server.requests == []


def test_a_grouping_of_ones_own_stays_with_the_audit(server: FakeServer, folder: Path) -> None:
    (folder / "groups.csv").write_text("country,region\nGermany,North\nNigeria,South\nTaiwan,South\n")
    survey = {"source": "my_wvs.csv", "topics": ["divorce", "suicide"], "regions": "groups.csv"}
    run_audit(config(server.url, models=2, survey=survey, name="own"), storage="sqlite:///auditor.db")
    asked = len(server.requests)
    (folder / "groups.csv").unlink()
    part = open_audit("own", storage="sqlite:///auditor.db").report().regions
    assert (part.grouping, part.ungrouped) == ("groups.csv", ["Northern Ireland"])
    assert [(r.region, r.countries) for r in part.rows[:2]] == [("North", 1), ("South", 2)]
    assert [(g.first, g.second, g.mae_gap.ci_low) for g in part.gaps] == [("North", "South", None)] * 2
    # Another grouping asks no model anything.
    survey["regions"] = "un_m49"
    run_audit(config(server.url, models=2, survey=survey, name="own"), storage="sqlite:///auditor.db")
    part = open_audit("own", storage="sqlite:///auditor.db").report().regions
    assert [r.region for r in part.rows[:3]] == ["Africa", "Asia", "Europe"]
    assert len(server.requests) == asked
    survey["regions"] = "groups.csv"
    with pytest.raises(SurveyError, match=r"there is no grouping 'groups\.csv'"):
        run_audit(config(server.url, models=2, survey=survey, name="own"), storage="sqlite:///auditor.db")
    assert len(server.requests) == asked
