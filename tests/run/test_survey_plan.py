"""What an audit plans to ask, and which part of the survey it keeps for estimates from similar countries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from auditor.cli.doctor import DoctorCheck
from auditor.cli.doctor_audit import _check_measurable
from auditor.config import AuditConfig
from auditor.domain import Cell, Survey
from auditor.run.survey_plan import list_unmeasurable, load_planned_survey
from auditor.surveys import load_survey
from tests.support.probe_packages import TOY_MODULE, install_package, use_packages


def audit_of(survey: Mapping[str, object], **keys: object) -> AuditConfig:
    models = [{"name": "m", "model": "simulated/knows-every-culture"}]
    config = {"name": "simulated-a", "judges": [], "survey": survey, "models": models, **keys}
    return AuditConfig.model_validate(config)


def plan(survey: Mapping[str, object], **keys: object) -> Survey:
    return load_planned_survey(audit_of(survey, **keys))


@pytest.mark.parametrize(
    "keys",
    [
        {"source": "wvs7-sample"},
        {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce"]},
        {"source": "pew2013-sample", "topics": ["using contraceptives"], "nonresponse": "neutral"},
    ],
)
def test_donors_are_the_rest_of_the_file(keys: dict[str, object]) -> None:
    survey, full_survey = plan(keys), load_survey(str(keys["source"]))
    assert set(survey.scores) | set(survey.donors) == set(full_survey.scores)
    assert not set(survey.scores) & set(survey.donors)
    assert bool(survey.donors) == ("topics" in keys)


def test_donors_have_the_configured_treatment_of_nonresponse() -> None:
    neutral = plan({"source": "pew2013-sample", "countries": ["Australia"], "nonresponse": "neutral"})
    donor = Cell("Brazil", "using contraceptives")
    assert neutral.donors[donor] != load_survey("pew2013-sample").scores[donor]


def test_cells_beyond_a_limit_are_donors() -> None:
    survey = plan({"source": "wvs7-sample"}, limits={"max_cells": 20})
    assert len(survey.scores) == 20
    assert len(survey.donors) == len(load_survey("wvs7-sample").scores) - 20


def test_probes_name_unmeasurable_figures_before_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "    settings = ToySettings\n"
    hook = "    def unmeasurable(self, audit):\n        yield f'{len(audit.cells)} cells are too few.'\n"
    module = TOY_MODULE.replace(settings, settings + hook)
    install_package(tmp_path / "site", "toy = toy:Toy", module)
    use_packages(monkeypatch, tmp_path / "site")
    one_cell = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"]}
    config = audit_of(one_cell, probes={"direct": {}, "toy": {}})
    sentence = "1 cells are too few."
    assert list_unmeasurable(config, load_planned_survey(config)) == [sentence]
    assert list(_check_measurable(config)) == [DoctorCheck("warn", "probes", sentence)]
