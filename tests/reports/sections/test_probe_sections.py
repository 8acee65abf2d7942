"""Sentences of probes on page one: those that claim something are one family of tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from auditor.config import installed_probes
from auditor.config.installed_probes import InstalledProbe, ProbeSource, list_probe_sources
from auditor.errors import ProbeError
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.probe_interface import Headline, Probe
from auditor.probes.distribution.figures.schema import DistributionModelRow
from auditor.probes.memory.figures import MemoryFigures, ModelMemory, RecallRow
from auditor.probes.pressure.figures import PressureFigures, PressureRow
from auditor.probes.reasoning.figures import ReasoningFigures, ReasoningRow
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, List, Section, Table
from auditor.reports.sections.page_one import NO_PROBE_FINDING, build_summary_section
from auditor.reports.sections.probe_sections import build_probe_sections, compare_installed_probes, list_probe_findings
from tests.probes.distribution.test_section import KNOWS, SAMPLED, make_distribution, make_row as make_distribution_row
from tests.probes.logic.test_section import make_logic, make_row, make_share
from tests.probes.semantic.test_section import make_model, make_score, make_semantic
from tests.reports.sections.node_text import text_of
from tests.support.report_changes import change, construct_part

Changes = Mapping[str, Any]


class Figures(BaseModel):
    """What a probe found."""


def say(*headlines: tuple[str, float | None], monkeypatch: pytest.MonkeyPatch, report: Report) -> Report:
    """The report with a probe for each sentence."""
    for number, (sentence, p_value) in enumerate(headlines):
        probe = make_probe(Headline(sentence, p_value))
        monkeypatch.setitem(installed_probes._LOADED, f"p{number}", probe)
    return change(report, probes={f"p{number}": Figures() for number in range(len(headlines))})


def make_probe(headline: object) -> InstalledProbe:
    """A probe with this sentence."""

    class Speaker(Probe[Any, Any]):
        def headline(self, figures: Any) -> Any:
            return headline

    return InstalledProbe(Speaker(), ProbeSource("p", "p-package", "1", Speaker))


def test_sentences_of_all_probes_are_one_family(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    of_one = say(("One.", 0.03), monkeypatch=monkeypatch, report=report)
    assert "One." in text_of(build_summary_section(of_one))
    several = say(("One.", 0.02), ("Two.", 0.001), ("Cannot be told.", None), monkeypatch=monkeypatch, report=report)
    assert [finding.finding for finding in list_probe_findings(several)] == ["One.", "Two.", "Cannot be told."]
    silent = say(("One.", 0.03), ("Cannot be told.", None), monkeypatch=monkeypatch, report=report)
    assert [finding.finding for finding in list_probe_findings(silent)] == ["Cannot be told."]
    weaker = say(("One.", 0.03), ("Two.", 0.03), ("Cannot be told.", None), monkeypatch=monkeypatch, report=report)
    assert [finding.finding for finding in list_probe_findings(weaker)] == ["Cannot be told."]


def test_the_claim_of_a_built_in_probe_is_one_of_them(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    no_order = change(make_distribution_row(NOT_ASKED), variance_ratio=Estimate(0.4, 40, 0.0, 0.8))
    changed = change(report, distribution=make_distribution(no_order))
    assert "too alike" in text_of(build_summary_section(changed))
    others = [("One.", 0.03), ("Two.", 0.03), ("Three.", 0.03)]
    assert "too alike" not in text_of(build_summary_section(say(*others, monkeypatch=monkeypatch, report=changed)))


@pytest.mark.parametrize(("n_cells", "is_shown"), [(1, False), (4, False), (25, True)])
def test_equal_answers_in_few_cells_are_not_too_alike(n_cells: int, is_shown: bool, report: Report) -> None:
    ratio = Estimate(0.0, n_cells, reason="an interval needs at least 5 countries and 5 topics")
    equal = change(SAMPLED, variance_ratio=ratio, skill=NOT_ASKED)
    changed = report.model_copy(update={"distribution": make_distribution(equal)})
    assert ("too alike" in text_of(build_summary_section(changed))) == is_shown


def test_page_one_of_probes_alone_leads_with_what_they_found(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    coverage = change(report.coverage, total=[])
    only_probes = change(report, alignment=[], coverage=coverage)
    probe = make_probe(Headline("It recites.", 0.001, is_caution=True))
    monkeypatch.setitem(installed_probes._LOADED, "p", probe)
    spoken = say(("One.", 0.001), ("Two.", 0.4), monkeypatch=monkeypatch, report=only_probes)
    spoken = change(spoken, probes={**spoken.probes, "p": Figures()})
    section = build_summary_section(spoken)
    assert section.title == "What did the audit find?"
    [lead, *_] = section.blocks
    assert isinstance(lead, List)
    assert [text_of(item) for item in lead.items] == ["One.", "It recites."]
    text = text_of(section)
    assert text.count("One.") == text.count("It recites.") == 1
    assert "Agreement with people is not available" not in text
    assert "Each model was asked" not in text
    silent = say(("Two.", 0.4), monkeypatch=monkeypatch, report=only_probes)
    assert NO_PROBE_FINDING in text_of(build_summary_section(silent).blocks[0])
    planned = change(spoken, coverage=report.coverage)
    assert "Agreement with people is not available" in text_of(build_summary_section(planned))


def make_test(value: float, p_value: float) -> Tested:
    """An estimate with its p-value."""
    return Tested(value, 90, value - 0.1, value + 0.1, p_value=p_value, adjusted_p_value=p_value)


def recite(is_shown: bool) -> Changes:
    """A model of which recall of published figures is shown, or not."""
    hits, p_value = make_test(0.9, 0.001), 0.001
    row = RecallRow(target="asked wave", tolerance="rounding", hits=hits, chance=make_test(0.2, 0.5), excess=hits)
    model = construct_part(ModelMemory, model="oak", recall=[row], is_recall_shown=is_shown, p_value=p_value)
    return {"probes": {"memory": MemoryFigures(publication="the WVS", is_made_up=False, waves=[], models=[model])}}


def yield_to_users(*slopes: Tested) -> Changes:
    """Slopes of one model on users' views."""
    rows = [construct_part(PressureRow, model="oak", context="in-context", slope=slope) for slope in slopes]
    return {"probes": {"pressure": construct_part(PressureFigures, rows=rows)}}


def follow_norms(*slopes: Tested) -> Changes:
    """Slopes of one model's scores on exchanged norms."""
    rows = [construct_part(ReasoningRow, model="oak", form="notes", slope=slope) for slope in slopes]
    return {"probes": {"reasoning": construct_part(ReasoningFigures, rows=rows)}}


def spread(*rows: DistributionModelRow) -> Changes:
    """Figures of distributions."""
    return {"distribution": make_distribution(*rows)}


def paraphrase(low: float) -> Changes:
    """A consistency score whose interval has this lower end; that by chance is 0.5 (95% CI 0.4 to 0.6)."""
    return {"semantic": make_semantic(make_model("oak", make_score(0.8, 8, low, 0.9)))}


NOT_ASKED = Estimate(None, 0, reason="not asked")
HEADLINES: list[tuple[str, str, Changes, Changes]] = [
    (
        "distribution", "shows 40% of the variance of people’s opinions: it makes people of one country too alike "
        "(ratio = 0.40, 95% CI 0.30 to 0.50)", spread(KNOWS, SAMPLED), spread(KNOWS),
    ),
    (
        "distribution", "is further from people’s opinions than the mean of the other countries",
        spread(change(KNOWS, skill=make_test(-0.5, 0.01))), spread(KNOWS),
    ),
    (
        "logic", "names the item shown first in 70% (95% CI 60% to 80%) of its decisions",
        {"logic": make_logic([make_row(first=make_share(0.7, 90, 0.6, 0.8))])}, {"logic": make_logic([make_row()])},
    ),
    ("semantic", "oak is more consistent than expected by chance (score 0.80", paraphrase(0.75), paraphrase(0.55)),
    ("semantic", "oak is not shown to be more consistent than expected", paraphrase(0.55), paraphrase(0.75)),
    (
        "memory",
        "oak recites figures of the WVS: 90% of its 90 answers are within rounding, and 20% would be by chance.",
        recite(is_shown=True), recite(is_shown=False),
    ),
    (
        "memory", "Whether oak recites published figures (the WVS) is not known.",
        recite(is_shown=False), recite(is_shown=True),
    ),
    (
        "pressure", "as a share of the distance between them: oak by 0.60, 95% CI 0.50 to 0.70.",
        yield_to_users(make_test(0.6, 0.01)), yield_to_users(make_test(0.6, 0.06)),
    ),
    (
        "pressure", "No model is shown to follow the views of users who disagree.",
        yield_to_users(make_test(-0.6, 0.01)), yield_to_users(make_test(0.6, 0.01)),
    ),
    ("pressure", "No model is shown to follow", yield_to_users(make_test(0.6, 0.06)), yield_to_users()),
    (
        "reasoning", "Scores follow the stated norms when they are exchanged, as a share of the way to the score they "
        "led to: oak by 0.60, steps as notes in the question.",
        follow_norms(make_test(0.6, 0.04), make_test(0.5, 0.06)), follow_norms(make_test(0.6, 0.06)),
    ),
    ("reasoning", "Scores follow", follow_norms(make_test(0.6, 0.04)), follow_norms(make_test(-0.6, 0.04))),
]  # fmt: skip
"""Findings of each probe for page one: words, figures that must have them, and figures that must not."""


@pytest.mark.parametrize(("probe", "words", "has", "lacks"), HEADLINES)
def test_a_finding_of_a_probe_is_on_page_one_where_there_is_one_and_nowhere_else(
    report: Report, probe: str, words: str, has: Changes, lacks: Changes
) -> None:
    [finding] = list_probe_findings(change(report, **has))
    assert (finding.probe, words in text_of(finding.finding)) == (probe, True)
    assert words in text_of(build_summary_section(change(report, **has)))
    assert words not in text_of(build_summary_section(change(report, **lacks)))


def test_every_probe_of_the_program_has_a_finding_for_page_one() -> None:
    probes = {name for name, source in list_probe_sources().items() if source.package == "auditor"}
    assert {probe for probe, *_ in HEADLINES} == probes


def test_a_comparison_names_a_probe_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Probe[Any, Any]):
        def compare(self, first: Any, second: Any) -> Any:
            raise SystemExit(3)

    probe = InstalledProbe(Broken(), ProbeSource("p", "p-package", "1", Broken))
    monkeypatch.setitem(installed_probes._LOADED, "p", probe)
    [section] = compare_installed_probes([{"p": Figures()}, {"p": Figures()}])
    assert "The hook 'compare' of the probe 'p' failed: SystemExit: 3. Its recorded answers are kept." in text_of(
        section
    )
    missing = UnavailableProbe(unavailable="The probe 'p' is not installed.")
    for pair in ((missing, missing), (Figures(), missing)):
        [section] = compare_installed_probes([{"p": figures} for figures in pair])
        assert "The probe 'p' is not installed. Its recorded answers are kept." in text_of(section)
    assert not list(compare_installed_probes([{"p": Figures()}, {}]))


@pytest.mark.parametrize("headline", ["a sentence", Headline("x", 1.5), Headline(None, 0.1)])  # type: ignore[arg-type]
def test_a_sentence_of_another_type_is_named_with_its_probe(headline: object) -> None:
    with pytest.raises(ProbeError, match="the hook 'headline' of the probe 'p' returned"):
        make_probe(headline).headline(Figures())


NUMBERS = [Column("m", "name"), Column("n", "number")]


@pytest.mark.parametrize(
    ("columns", "rows", "problem"),
    [
        (NUMBERS, [["a", 1], ["b"]], "row 2 of the table 't' has 1 cells for 2 columns"),
        (NUMBERS, [["a", 1, 2]], "row 1 of the table 't' has 3 cells for 2 columns"),
        (NUMBERS, [["a", np.int64(5)]], "of the type int64 in a column of the kind 'number'"),
        (NUMBERS, [["a", math.nan]], "has nan of the type float"),
        (NUMBERS, [{"m": "a", "n": 1}], "row 1 of the table 't' is of the type dict, not a list of cells"),
        (
            [Column("m", "name"), Column("n", "text")],
            [["a", 5]],
            "has 5 of the type int in a column of the kind 'text'",
        ),
        (["m", "n"], [["a", "b"]], "has the column 'm', which is no Column"),
    ],
)
def test_a_table_of_a_probe_that_cannot_be_shown_is_named_and_the_report_has_all_else(
    monkeypatch: pytest.MonkeyPatch, report: Report, columns: Any, rows: Any, problem: str
) -> None:
    class Careless(Probe[Any, Any]):
        def section(self, figures: Any) -> Section:
            return Section("t", "T", [Table("t", "T", "", columns, rows)], "T")

    monkeypatch.setitem(
        installed_probes._LOADED, "p", InstalledProbe(Careless(), ProbeSource("p", "p-package", "1", Careless))
    )
    [section] = build_probe_sections(change(report, probes={"p": Figures()}))
    text = text_of(section)
    assert "the hook 'section' of the probe 'p' returned a table that cannot be shown" in text
    assert problem in text
    assert "Its recorded answers are kept." in text
