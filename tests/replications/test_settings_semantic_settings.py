"""Marks of SaGE, SGE and the consistency score are derived from the stored configuration of the audit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from auditor.config import AuditConfig
from auditor.metrics.judges.agreement import fleiss_kappa, krippendorff_alpha
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.replications import planning
from auditor.replications.definitions import MeasuredAudit, derive_mark, read_setting
from auditor.replications.experiment import Experiment, FigureSource, PublishedSetting
from auditor.replications.planning import merge_settings
from auditor.replications.presets import load_paper
from auditor.replications.settings import NOT_SET
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count
from tests.support.known import known

PAPERS = ("sage", "sge", "consistency")
AUDITS = {"sage": "MCC", "sge": "MIC", "consistency": "questions"}
N_WORDINGS = {"sage": 5, "sge": 10, "consistency": 0}
N_QUESTIONS = {"MCC": 10000, "selected": 500}
TRIAL_QUESTIONS = {"rules": 500, "temperature": 500, "TruthfulQA": 817, "HellaSwag": 1000}
JUDGE = {"name": "judge", "model": "openai/gpt-3.5-turbo"}
AS_PUBLISHED: dict[str, dict[str, Any]] = {
    "sage": {
        "probes": {"semantic": {"questions": "mcc.csv", "rot_model": "vicuna-13b"}},
        "judges": [{"name": "vicuna-13b", "model": "openai/vicuna"}],
    },
    "sge": {"probes": {"semantic": {"questions": "mic.csv"}}},
    "consistency": {"probes": {"semantic": {"consistency": {"judge": "judge"}}}, "judges": [JUDGE]},
}
"""What a user adds to the experiment to measure as published, by paper."""
CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "sage": {
        "questions": {"probes": {"semantic": {"questions": "built-in"}}},
        "prompts": {"language": "native"},
        "answer-form": {"probes": {"semantic": {"mode": "structured"}}},
        "max-tokens": {"probes": {"semantic": {"max_tokens": 100}}},
        "temperature": {"probes": {"semantic": {"temperature": 0.7}}},
        "wordings": {"probes": {"semantic": {"paraphraser": "vicuna-13b"}}},
        "rules-author": {"probes": {"semantic": {"rot_model": None}}},
        "encoder": {"probes": {"semantic": {"encoder": "all-MiniLM-L6-v2"}}},
        "bertscore": {"probes": {"semantic": {"rivals": ["bertscore"]}}},
    },
    "sge": {
        "questions": {"probes": {"semantic": {"questions": "built-in"}}},
        "variant": {"probes": {"semantic": {"variant": "sage"}}},
        "prompts": {"language": "native"},
        "answer-form": {"probes": {"semantic": {"mode": "structured"}}},
    },
    "consistency": {
        "judge": {"judges": [{**JUDGE, "model": "openai/gpt-4"}]},
        "prompts": {"language": "native"},
        "judge-prompt": {"probes": {"semantic": {"consistency": {"form": "standard"}}}},
        "judge-temperature": {"judges": [{**JUDGE, "params": {"temperature": 0}}]},
        "judge-tokens": {"judges": [{**JUDGE, "params": {"max_tokens": 200}}]},
        "pairs": {"probes": {"semantic": {"consistency": {"pairs": "all"}}}},
        "samples": {"probes": {"semantic": {"consistency": {"samples": 4}}}},
        "temperature": {"probes": {"semantic": {"consistency": {"temperature": 0.5}}}},
    },
}
"""A change of the configuration, by paper and id of the departure that it must be."""


def experiment(paper: str) -> Experiment:
    return known(load_paper(paper).experiment)


def as_published(paper: str, audit: str | None = None) -> dict[str, Any]:
    """The configuration of an audit of the experiment as published."""
    settings = merge_settings({"name": "rep", "models": [{"name": "a", "model": "openai/a"}]}, experiment(paper).config)
    settings = merge_settings(settings, experiment(paper).audits[audit or AUDITS[paper]])
    return merge_settings(merge_settings(settings, experiment(paper).as_published), AS_PUBLISHED[paper])


def measured(
    paper: str,
    settings: dict[str, Any],
    n_questions: int = 10000,
    audit: str | None = None,
    wordings: tuple[int, int] | None = None,
    **of_trials: object,
) -> MeasuredAudit:
    """An audit with this configuration and number of questions, as it is stored: its JSON read again.

    Args:
        wordings: fewest and most of a question; by default, as published.
        of_trials: what all trials on it have instead of the published settings.
    """
    stored = AuditConfig.model_validate(settings).model_dump_json()
    report = cast(Any, Report).model_construct(
        semantic=cast(Any, SemanticReport).model_construct(questions=n_questions)
    )
    published = {"rules_sha256": "0" * 64, "asked_wordings": 5, "wordings_author": "vicuna-13b"}
    trials = {
        name: [SimpleNamespace(**{**published, "questions": n, **of_trials})] for name, n in TRIAL_QUESTIONS.items()
    }
    config, name = AuditConfig.model_validate_json(stored), audit or AUDITS[paper]
    return MeasuredAudit(name, config, report, trials, wordings or (N_WORDINGS[paper],) * 2)


def departures_of(paper: str, setting: PublishedSetting, audit: MeasuredAudit) -> tuple[str, list[tuple[str, bool]]]:
    source = FigureSource(trial="TruthfulQA" if "{trial}" in setting.key else "")
    mark, departures = derive_mark(experiment(paper), setting.parts, source, audit)
    return mark, [(departure.id, departure.is_wording) for departure in departures]


SETTINGS = [(paper, setting) for paper in PAPERS for setting in experiment(paper).settings]


OWN_RULES = Path(planning.__file__).parent / "presets" / "data" / "sage-rules.csv"
# Settings that are no key of the configuration: what changes in the audit instead.
OTHER_CHANGES: dict[str, dict[str, Any]] = {
    "paraphrases": {"wordings": (2, 5)},
    "number-of-questions": {"n_questions": 100},
    "followed-rules": {"rules_sha256": hashlib.sha256(OWN_RULES.read_bytes()).hexdigest()},
    "questions-of-experiments": {"questions": 20},
    "wordings-of-experiments": {"asked_wordings": "5 to 6"},
    "author-of-wordings": {"wordings_author": "the file's author"},
}


def test_every_setting_has_a_change() -> None:
    for paper in PAPERS:
        ids = {setting.id for setting in experiment(paper).settings}
        assert ids - set(OTHER_CHANGES) == set(CHANGES[paper])
    assert experiment("sage").small.files["RULES"] == f"preset:{OWN_RULES.name}"


@pytest.mark.parametrize(("paper", "setting"), SETTINGS, ids=lambda value: getattr(value, "id", value))
def test_a_configuration_that_differs_is_never_marked_same(paper: str, setting: PublishedSetting) -> None:
    mark, departures = departures_of(paper, setting, measured(paper, as_published(paper)))
    assert mark == ("other_words" if departures else "same_definition")
    assert all(is_wording for _, is_wording in departures)
    changed = (
        measured(paper, as_published(paper), **OTHER_CHANGES[setting.id])
        if setting.id in OTHER_CHANGES
        else measured(paper, merge_settings(as_published(paper), CHANGES[paper][setting.id]))
    )
    mark, departures = departures_of(paper, setting, changed)
    assert mark == "other_definition"
    assert (setting.id, False) in departures


@pytest.mark.parametrize("paper", ["sage", "sge"])
def test_too_few_wordings_by_a_paraphraser_are_a_departure_with_their_number(paper: str) -> None:
    [setting] = [setting for setting in experiment(paper).settings if setting.id == "paraphrases"]
    n_published = N_WORDINGS[paper]
    audit = measured(paper, as_published(paper), wordings=(2, n_published))
    [departure] = derive_mark(experiment(paper), setting.parts, FigureSource(), audit)[1]
    assert (departure.id, departure.measured) == ("paraphrases", f"2 to {n_published}")


def test_the_number_of_questions_is_that_of_the_figures_audit() -> None:
    [number] = [setting for setting in experiment("sage").settings if setting.id == "number-of-questions"]
    for audit, n_questions in N_QUESTIONS.items():
        published = measured("sage", as_published("sage", audit), n_questions, audit)
        assert departures_of("sage", number, published)[0] == "same_definition"
    swapped = measured("sage", as_published("sage"), N_QUESTIONS["MCC"], "selected")
    assert departures_of("sage", number, swapped)[0] == "other_definition"


def test_a_trial_has_its_own_number_of_questions() -> None:
    [number] = [setting for setting in experiment("sage").settings if setting.id == "questions-of-experiments"]
    for trial, n_questions in TRIAL_QUESTIONS.items():
        source = FigureSource(trial=trial)
        published = measured("sage", as_published("sage"), audit="selected", questions=n_questions)
        assert derive_mark(experiment("sage"), number.parts, source, published) == ("same_definition", [])
        small = measured("sage", as_published("sage"), audit="selected", questions=2)
        [departure] = derive_mark(experiment("sage"), number.parts, source, small)[1]
        expected = f"number of questions of the experiment: 2 (published: {format_count(n_questions)})"
        assert (departure.description, departure.audits) == (expected, [trial])


def test_a_setting_without_a_value_of_the_audit_or_trial_is_no_departure() -> None:
    [number] = [setting for setting in experiment("sage").settings if setting.id == "questions-of-experiments"]
    audit = measured("sage", as_published("sage"), audit="selected")
    assert derive_mark(experiment("sage"), number.parts, FigureSource(), audit) == ("same_definition", [])


@pytest.mark.parametrize("model_settings", [{"temperature": 0.2}, {"params": {"temperature": 0.2}}])
def test_a_models_own_temperature_counts(model_settings: dict[str, Any]) -> None:
    settings = as_published("sage")
    settings["models"] = [{"name": "a", "model": "openai/a", **model_settings}, {"name": "b", "model": "openai/b"}]
    assert read_setting(measured("sage", settings), "semantic.temperature") == [0.2, 0.8]


def test_a_sampled_temperature_is_the_sections_unless_the_models_requests_have_another() -> None:
    settings = as_published("consistency")
    settings["models"] = [{"name": "a", "model": "openai/a", "temperature": 0.2}]
    assert read_setting(measured("consistency", settings), "consistency.temperature") == 1.0
    settings["models"] = [{"name": "a", "model": "openai/a", "params": {"temperature": 0.2}}]
    assert read_setting(measured("consistency", settings), "consistency.temperature") == 0.2


def test_settings_of_an_audit_without_the_probe_are_not_set() -> None:
    settings = as_published("sage")
    settings |= {"probes": {"direct": {}}, "survey": {"source": "wvs7-sample"}, "judges": []}
    audit = measured("sage", settings)
    assert read_setting(audit, "semantic.temperature") == read_setting(audit, "probes.semantic.alpha") == NOT_SET


def test_a_figures_own_parts_count_besides_those_of_its_table() -> None:
    audit = measured("sage", merge_settings(as_published("sage"), CHANGES["sage"]["bertscore"]))
    parts = frozenset({"answers"})
    of_table = derive_mark(experiment("sage"), parts, FigureSource(), audit)
    of_figure = derive_mark(experiment("sage"), parts, FigureSource(parts=frozenset({"bertscore"})), audit)
    assert [mark for mark, _ in (of_table, of_figure)] == ["other_words", "other_definition"]


@pytest.mark.parametrize("paper_id", [*PAPERS, "evalmoraal", "logic"])
def test_figures_name_the_departures_and_parts_that_are_declared(paper_id: str) -> None:
    paper = load_paper(paper_id)
    sources = [source for table in paper.tables for source in table.list_sources()]
    declared = {departure.id for departure in experiment(paper_id).departures}
    assert {name for source in sources for name in source.departures} == declared
    parts = {part for table in paper.tables for part in table.parts} | {part for s in sources for part in s.parts}
    if paper_id in PAPERS:
        assert {part for setting in experiment(paper_id).settings for part in setting.parts} <= parts


def test_how_answers_are_asked_does_not_bear_on_given_answers() -> None:
    small = {"limit": 2, "mode": "structured", "max_words": 12, "max_tokens": 100}
    audit = measured("consistency", merge_settings(as_published("consistency"), {"probes": {"semantic": small}}))
    for parts, expected in ((["judge", "judged"], set()), (["judged", "answers"], set(small))):
        _, departures = derive_mark(experiment("consistency"), frozenset(parts), FigureSource(), audit)
        keys = {entry.id.removeprefix("probes.semantic.") for entry in departures if entry.id.startswith("probes.")}
        assert keys == expected


def test_an_exponent_is_named_as_that_of_sage() -> None:
    """Figures of other measures stand in the same row."""
    for source in (source for table in load_paper("sage").tables for source in table.list_sources()):
        is_of_sage = "sage:alpha" in source.figure + source.model_figure
        assert ("SaGE with exponent" in source.label) is is_of_sage
        assert ("exponent" in source.label) is is_of_sage


def test_the_note_of_figure_4_is_computed_from_table_3() -> None:
    sage = load_paper("sage")
    points: dict[str, list[float]] = {}
    for cell in sage.iterate_cells("3"):
        points.setdefault(cell.column, []).append(known(cell.value))
    r = {
        task: np.corrcoef(points[f"{task}, SaGE"], points[f"{task}, accuracy"])[0, 1]
        for task in ("TruthfulQA", "HellaSwag")
    }
    [figure] = sage.select_tables("figure-4")
    assert f"r = {r['TruthfulQA']:.2f} for TruthfulQA and {r['HellaSwag']:.2f} for HellaSwag, 9 models" in figure.note


def test_the_stated_difference_of_kappa_and_alpha_is_exact() -> None:
    labels = np.random.default_rng(0).integers(0, 2, (3, 40))  # raters, pairs
    alpha = krippendorff_alpha(labels.astype(float)).value
    kappa = fleiss_kappa([[int((pair == label).sum()) for label in (0, 1)] for pair in labels.T]).value
    assert alpha is not None
    assert kappa == pytest.approx(alpha - (1 - alpha) / (labels.size - 1), abs=1e-12)
    [departure] = [entry for entry in experiment("sge").departures if entry.id == "coefficient"]
    assert departure.description.endswith("lower by (1 - alpha) / (labels - 1)")
