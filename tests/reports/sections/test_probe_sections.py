"""Sentences of probes on page one: those that claim something are one family of tests."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from auditor.config import installed_probes
from auditor.config.installed_probes import InstalledProbe, ProbeSource
from auditor.errors import ProbeError
from auditor.metrics.intervals.estimate import Estimate
from auditor.probe_interface import Headline, Probe
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List
from auditor.reports.sections.page_one import NO_PROBE_FINDING, build_summary_section
from auditor.reports.sections.probe_sections import compare_installed_probes, list_probe_findings
from tests.probes.distribution.test_section import make_distribution, make_row
from tests.reports.sections.node_text import text_of


class Figures(BaseModel):
    """What a probe found."""


def say(*headlines: tuple[str, float | None], monkeypatch: pytest.MonkeyPatch, report: Report) -> Report:
    """The report with a probe for each sentence."""
    for number, (sentence, p_value) in enumerate(headlines):
        probe = make_probe(Headline(sentence, p_value))
        monkeypatch.setitem(installed_probes._LOADED, f"p{number}", probe)
    return report.model_copy(update={"probes": {f"p{number}": Figures() for number in range(len(headlines))}})


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
    no_order = make_row(Estimate(None, 0, reason="not asked")).model_copy(
        update={"variance_ratio": Estimate(0.4, 40, 0.0, 0.8)}  # p = 0.013 of a ratio of 1
    )
    changed = report.model_copy(update={"distribution": make_distribution(no_order)})
    assert "too alike" in text_of(build_summary_section(changed))
    others = [("One.", 0.03), ("Two.", 0.03), ("Three.", 0.03)]
    assert "too alike" not in text_of(build_summary_section(say(*others, monkeypatch=monkeypatch, report=changed)))


def test_page_one_of_probes_alone_leads_with_what_they_found(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    coverage = report.coverage.model_copy(update={"total": []})
    only_probes = report.model_copy(update={"alignment": [], "coverage": coverage})
    probe = make_probe(Headline("It recites.", 0.001, is_caution=True))
    monkeypatch.setitem(installed_probes._LOADED, "p", probe)
    spoken = say(("One.", 0.001), ("Two.", 0.4), monkeypatch=monkeypatch, report=only_probes)
    spoken = spoken.model_copy(update={"probes": {**spoken.probes, "p": Figures()}})
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
    planned = spoken.model_copy(update={"coverage": report.coverage})
    assert "Agreement with people is not available" in text_of(build_summary_section(planned))


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
