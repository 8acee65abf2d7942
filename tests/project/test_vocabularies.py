"""Tables by the members of an enumeration or of a closed set of words have all of them.

A member that a table lacks would show only in the rare data that have it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, get_args

import pytest

import auditor
from auditor.agents.cell_schedule import Task
from auditor.agents.fault_injection import FAULTS
from auditor.config.installed_probes import list_built_in_probes
from auditor.config.sections import PanelSection
from auditor.domain import LANGUAGES, HarmlessAlteration, LogprobMeasure, Purpose
from auditor.metrics.judges.accuracy import Evidence, JudgeDifference
from auditor.models.finish_reasons import FinishCategory
from auditor.probes.logic import section as logic
from auditor.probes.logic.comparison_imports import CRITERIA
from auditor.probes.logic.figures.schema import InstanceMeans
from auditor.probes.logic.questions import load_comparison_wording, load_english_criteria
from auditor.reports.data.agreement.sensitivity import SensitivityRow
from auditor.reports.data.differences.schema import ChangeLabel, ResolutionFlipRow
from auditor.reports.data.failures import JUDGE_PURPOSES
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.panel.certificate import PHRASES
from auditor.reports.data.panel.schema import JudgeRow, PairVerdict
from auditor.reports.data.sampling import SamplingExperiment
from auditor.reports.sections import conflicts, differences, panel, sensitivity
from auditor.reports.sections.experiments import sampling
from auditor.storage.conflict_status import ConflictStatus

OMITTED: Mapping[str, set[Enum]] = {
    "EXIT_CODES": {GateStatus.SKIPPED},  # a series is skipped, never a check as a whole
    "OPENTELEMETRY_NAMES": {FinishCategory.MALFORMED, FinishCategory.UNKNOWN},  # the conventions have no name for them
    "OUTCOME_BY_CATEGORY": {FinishCategory.COMPLETE, FinishCategory.TOOL_CALL, FinishCategory.UNKNOWN},  # the text says
    "STAGES": {Task.GUESS, Task.RESTATE, Task.REVIEW_RESTATED},  # they run within the stage of reviews
    "STOP_REASONS": {FinishCategory.FAILED, FinishCategory.MALFORMED, FinishCategory.UNKNOWN},  # "unknown" in Inspect
    "UNSUPPORTED_STATUSES": {LogprobMeasure.CONTINUATION},  # sends no request
}
"""Members that a table leaves out on purpose, by the table's name."""
PURPOSES_OF_JUDGES_OF_PROBES = {purpose for probe in list_built_in_probes() for purpose in probe.judge_purposes}
PURPOSES_OF_MODELS = {
    *(Purpose.DIRECT, Purpose.LOGPROB, Purpose.declare("moral"), Purpose.declare("opinion"),
      Purpose.declare("paraphrase"), Purpose.REWRITE),
    *(Purpose.declare("rule"), Purpose.declare("translation")),
}  # fmt: skip


def iterate_enum_tables() -> Iterator[tuple[str, type[Enum], set[Any]]]:
    """Yield every constant of the program that is a table by members of one enumeration: its name, and its keys."""
    seen = set()
    for module in pkgutil.walk_packages(auditor.__path__, "auditor."):
        if "migrations" in module.name or module.name == "auditor.__main__":
            continue
        for name, table in vars(import_module(module.name)).items():
            if isinstance(table, Mapping) and id(table) not in seen and not name.startswith("__"):
                seen.add(id(table))
                keys = set(table) - {None}
                key_types = {type(key) for key in keys}
                if len(key_types) == 1 and issubclass(enumeration := key_types.pop(), Enum):
                    yield name, enumeration, keys


def test_tables_by_an_enumeration_have_every_member() -> None:
    tables = list(iterate_enum_tables())
    assert len(tables) > 15
    omitted = [(name, set(enumeration) - keys) for name, enumeration, keys in tables]
    assert {name: members for name, members in omitted if members} == OMITTED


FIELDS_OF_DIFFERENCES = {name for name, field in JudgeRow.model_fields.items() if field.annotation is JudgeDifference}


def literal_words(section: Any, field: str) -> set[str]:
    """The words that a field of a pydantic model takes."""
    return set(get_args(section.model_fields[field].annotation))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (conflicts.STATE_LABELS, set(ConflictStatus)), (conflicts.STATE_STATUS, set(ConflictStatus)),
        (conflicts.VOTING_RULE_LABELS, literal_words(PanelSection, "vote")),
        (differences.CHANGE_LABELS, {*get_args(ChangeLabel), "not tested"}),
        (differences.CHANGE_PHRASES, {*get_args(ChangeLabel), "not tested"}),
        (differences.RESOLVER_LABELS, literal_words(ResolutionFlipRow, "first_by")),
        (sampling.SETTING_LABELS, literal_words(SamplingExperiment, "what")),
        (sampling.EXPLANATIONS, literal_words(SamplingExperiment, "what")),
        (sensitivity.FIGURE_LABELS, literal_words(SensitivityRow, "figure")),
        (sensitivity.FIGURES_IN_SENTENCES, literal_words(SensitivityRow, "figure")),
        (panel.TITLES, FIELDS_OF_DIFFERENCES), ([field for field, _ in PHRASES], FIELDS_OF_DIFFERENCES),
        ([evidence for _, evidence in PHRASES], set(get_args(Evidence))),
        (panel.EVIDENCE_TITLES, set(get_args(Evidence))), (panel.FINDING_TITLES, set(get_args(PairVerdict))),
        (logic.SHARE_TITLES, set(InstanceMeans.model_fields)), (logic.CRITERION_QUESTIONS, set(CRITERIA)),
        ({*JUDGE_PURPOSES, *PURPOSES_OF_JUDGES_OF_PROBES, *PURPOSES_OF_MODELS}, set(Purpose)),
    ],
)  # fmt: skip
def test_tables_by_words_have_every_word(table: Any, words: set[str]) -> None:
    assert set(table) == words


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_criterion_of_comparisons_has_words_in_every_language_or_in_english_only(language: str) -> None:
    criteria, english_only = load_comparison_wording(language).criteria.keys(), load_english_criteria().keys()
    assert criteria | english_only == set(CRITERIA)
    assert not criteria & english_only


def test_no_fault_has_the_name_of_a_harmless_alteration() -> None:
    assert not FAULTS.keys() & set(HarmlessAlteration)
