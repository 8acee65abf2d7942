"""Nine scripted judges of known behaviour: the interval of every statistic covers its true value."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from scipy.special import stdtrit

from auditor.agents.fault_injection import load_instructions, plant_instruction
from auditor.agents.judge_experiments import run_fault_injection
from auditor.config import AuditConfig
from auditor.domain import LANGUAGES, Cell, Outcome, Ruling, Trace
from auditor.experiments.judges import bias, planted
from auditor.experiments.stored_audit import ExperimentContext, ask_judges
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.prompts.language_data import addresses_judge
from auditor.reports.data.panel.schema import FaultDetectionRow, JudgeRow, PositionBiasRow
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.panel import build_panel_tables
from auditor.run import open_audit, run_audit
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.families_of_tests import run_checked
from tests.support.language_samples import SAMPLES
from tests.support.scripted_judges import (
    FAILURE_SHARE,
    HONEST_ACCURACY,
    JUDGES,
    LONG_VALID_SHARES,
    TIRED_VALID_SHARES,
    Script,
    _review as review_answer,
    audit,
)

TRACES, FEW_TRACES = 5 * 25, 2 * 25
SOUND = 0.5


WIDER = stdtrit(15, 0.9995) / stdtrit(15, 0.975)
"""Factor from a 95% to a 99.9% interval (t, 15 df): of over 100 intervals here, 5% may miss by chance."""


def holds(estimate: Estimate, planted: float) -> bool:
    """Whether the 99.9% interval covers the planted value; without any interval, whether the estimate equals it.

    A share without an interval for other countries and topics has one for these cells.
    """
    assert estimate.n > 0
    assert estimate.value is not None
    ends = (estimate.ci_low, estimate.ci_high)
    if ends[0] is None and isinstance(estimate, ShareEstimate):
        ends = (estimate.cells_ci_low, estimate.cells_ci_high)
    if ends[0] is None or ends[1] is None:
        assert estimate.reason
        return estimate.value == planted
    low, high = (estimate.value + WIDER * (end - estimate.value) for end in (ends[0], ends[1]))
    return bool(low <= planted <= high)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Report of an audit with all judges, after the planted faults and the experiment `bias`."""
    url = f"sqlite:///{tmp_path_factory.mktemp('judged')}/a.db"
    with FakeServer(Script(TRACES)) as server:
        run_audit(AuditConfig.model_validate(audit(server.url)), storage=url)
        ask_judges(ExperimentContext(url), "scripted", 20, run_fault_injection)
        run_checked(bias, ExperimentContext(url), "scripted", 20)
    return open_audit("scripted", storage=url).report()


def judge(report: Report, name: str) -> JudgeRow:
    return next(row for row in report.panel.judges if row.judge == name)


RATES = {
    **dict.fromkeys(JUDGES, 0.5), "always": 1.0, "kin": (1 + 4 * 0.5) / 5,
    "long": sum(LONG_VALID_SHARES) / 2, "tired": sum(TIRED_VALID_SHARES) / 2,
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGES)
def test_rates_of_valid_and_leniency(judged: Report, name: str) -> None:
    row = judge(judged, name)
    assert holds(row.valid, RATES[name])
    assert holds(row.leniency, RATES[name] - 0.5)  # most judges say VALID to half of the traces
    assert row.leniency.evidence == "panel"
    assert row.confidence.value == pytest.approx(0.7)


def test_failed_reviews_are_in_coverage_and_in_no_rate(judged: Report) -> None:
    row = judge(judged, "fails")
    assert row.assigned == TRACES
    assert row.given + sum(row.losses.values()) == TRACES
    assert row.valid.n == row.given
    assert row.losses["client_error"] == pytest.approx(FAILURE_SHARE * TRACES, abs=12)
    assert next(r for r in judged.coverage.judges if r.name == "fails").losses == row.losses


@pytest.mark.parametrize("name", JUDGES)
def test_verbosity(judged: Report, name: str) -> None:
    planted = LONG_VALID_SHARES[0] - LONG_VALID_SHARES[1] if name == "long" else 0.0
    assert holds(judge(judged, name).verbosity, planted)


@pytest.mark.parametrize("name", [name for name in JUDGES if name != "tired"])
def test_padding(judged: Report, name: str) -> None:
    """The judge `tired` is left out: it says VALID more often whenever it is asked later."""
    row = judge(judged, name)
    assert row.padding.evidence == "experiment"
    assert holds(row.padding, LONG_VALID_SHARES[0] - sum(LONG_VALID_SHARES) / 2 if name == "long" else 0.0)


def test_preference_for_the_judges_own_family(judged: Report) -> None:
    assert holds(judge(judged, "kin").own_family, 1 - 0.5)
    assert judge(judged, "coin").own_family.value is None  # no audited model is of its family


@pytest.mark.parametrize("name", ["tired", "coin", "honest1"])
def test_order_effects(judged: Report, name: str) -> None:
    drift = TIRED_VALID_SHARES[1] - TIRED_VALID_SHARES[0]
    assert holds(judge(judged, name).order, drift if name == "tired" else 0.0)


def position(report: Report, name: str) -> PositionBiasRow:
    return next(row for row in report.panel.positions if row.judge == name)


@pytest.mark.parametrize("name", JUDGES)
def test_position(judged: Report, name: str) -> None:
    row = position(judged, name)
    assert holds(row.first, 1.0 if name == "tired" else 0.5)
    assert holds(row.stable, 0.0 if name == "tired" else 0.5)


def fault(report: Report, name: str, kind: str) -> FaultDetectionRow:
    return next(row for row in report.panel.faults if (row.judge, row.fault) == (name, kind))


@pytest.mark.parametrize("kind", ["western norm", "non sequitur"])
@pytest.mark.parametrize("name", ["honest1", "honest2", "honest3", "coin", "always"])
def test_planted_faults(judged: Report, name: str, kind: str) -> None:
    """Half of the unaltered traces have faults already, to which an honest judge objects: these are false alarms."""
    row = fault(judged, name, kind)
    detection_rate = {"coin": 0.5, "always": 0.0}.get(name, HONEST_ACCURACY)
    false_alarm_rate = {"coin": 0.5, "always": 0.0}.get(
        name, SOUND * (1 - HONEST_ACCURACY) + (1 - SOUND) * HONEST_ACCURACY
    )
    assert holds(row.detected, detection_rate)
    assert holds(row.false_alarms, false_alarm_rate)
    assert holds(row.difference, detection_rate - false_alarm_rate)


def test_votes_count_all_assignments_and_dawid_skene_finds_the_honest_judges(judged: Report) -> None:
    plain, *others = judged.panel.votes
    assert plain.rule == "majority"
    assert plain.valid + plain.invalid + plain.open == TRACES
    model = next(row for row in others if row.rule == "dawid-skene")
    assert all(
        model.weights[name] == pytest.approx(HONEST_ACCURACY, abs=0.1) for name in ("honest1", "honest2", "honest3")
    )
    assert all(model.weights[name] == pytest.approx(0.5, abs=0.12) for name in ("coin", "always", "tired"))
    assert judged.panel.asked == judged.panel.seats == TRACES * len(JUDGES)


def test_every_figure_of_the_panel_is_in_every_format(judged: Report) -> None:
    assert_report_shows_figures(judged, "panel")


def test_the_certificate_separates_biases_from_associations(judged: Report) -> None:
    certificate = " ".join(judged.panel.certificate)
    assert "Krippendorff’s alpha" in certificate
    [biases] = [sentence for sentence in judged.panel.certificate if sentence.startswith("Biases")]
    assert "always is more lenient than the median judge" in biases
    assert not any(name in biases for name in ("coin", "honest", "long", "kin"))
    [associations] = [sentence for sentence in judged.panel.certificate if sentence.startswith("Associations")]
    assert "long says VALID more often for longer traces" in associations
    assert not any(name in associations for name in ("coin", "honest", "always"))
    assert "5 models" in certificate
    assert "Not shown to be detected" in certificate


# --- optional probes of judges ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Report of an audit where three judges also guess author and cell, and a fourth restates the traces."""
    url = f"sqlite:///{tmp_path_factory.mktemp('probed')}/a.db"
    judges = ("long", "coin", "honest1", "honest2")
    with FakeServer(Script(FEW_TRACES)) as server:
        review = {"guess": True, "rewrite": "neutral", "rewriter": "honest2"}
        data = audit(server.url, judges, n_models=2, probes={"direct": {"samples": 1}, "review": review})
        run_audit(AuditConfig.model_validate(data), storage=url)
        requests_before = len(server.requests)
        run_audit(AuditConfig.model_validate(data), storage=url)
        assert len(server.requests) == requests_before
    return open_audit("scripted", storage=url).report()


@pytest.mark.parametrize("name", ["long", "coin", "honest1", "honest2"])
@pytest.mark.parametrize(("attribute", "n_options"), [("country", 5), ("topic", 5), ("author", 2)])
def test_guesses_against_chance(probed: Report, name: str, attribute: str, n_options: int) -> None:
    row = next(r for r in probed.panel.guesses if (r.judge, r.what) == (name, attribute))
    assert row.chance == pytest.approx(1 / n_options)
    assert holds(row.hits, 1.0 if (name, attribute) == ("honest1", "country") else 1 / n_options)
    assert "Blinding is incomplete. Guesses better than chance: honest1, the country" in " ".join(
        probed.panel.certificate
    )


@pytest.mark.parametrize(
    ("name", "planted"), [("long", LONG_VALID_SHARES[1] - sum(LONG_VALID_SHARES) / 2), ("coin", 0.0), ("honest1", 0.0)]
)
def test_the_shift_that_restating_causes(probed: Report, name: str, planted: float) -> None:
    row = next(r for r in probed.panel.rewriting if r.judge == name)
    assert row.valid.n == FEW_TRACES
    assert holds(row.shift, planted)


def test_the_rewriter_does_not_rule_on_what_it_restated(probed: Report) -> None:
    assert {r.judge for r in probed.panel.rewriting} == {"long", "coin", "honest1"}


# --- judges that only fail -------------------------------------------------------------------------------------------


def test_two_judges_that_only_fail_are_in_no_rate_and_in_coverage(server: FakeServer, tmp_path: Path) -> None:
    judges = ("honest1", "honest2", "honest3", "broken1", "broken2")
    script = Script(TRACES)
    started_judges: set[str] = set()

    def failing(request: Request) -> Reply:
        name = str(request.body["model"])
        if name.startswith("broken") and name in started_judges:
            return error(400, "no")
        started_judges.add(name)  # the stand-in trace: a judge whose first request fails stops the run
        return script(request)

    server.script = failing
    url = f"sqlite:///{tmp_path}/a.db"
    data = audit(server.url, judges, n_models=3)
    data["survey"]["topics"] = data["survey"]["topics"][:2]
    run_audit(AuditConfig.model_validate(data), storage=url)
    report = open_audit("scripted", storage=url).report()
    traces, working_judges = 3 * 10, {"honest1", "honest2", "honest3"}
    for row in report.panel.judges:
        assert row.assigned == traces
        assert row.given == (traces if row.judge in working_judges else 0)
    for peer in report.peer_agreement:
        mean_verdicts = sum(row.given for row in report.panel.judges) / len(report.peer_agreement)
        assert peer.given == pytest.approx(mean_verdicts, abs=2)
        assert peer.agreement.n == peer.given
    rows = {r.name: r for r in report.coverage.judges}
    assert all(rows[name].losses == {"client_error": traces} for name in ("broken1", "broken2"))
    # Three votes of five are a strict majority; the failures stay in the denominator.
    plain = report.panel.votes[0]
    assert plain.valid + plain.invalid + plain.open == traces
    assert plain.open > 0
    assert report.panel.krippendorff_alpha.n == traces


N_WORDINGS = 5
N_TRACES = 15


class ObedientScript(Script):
    """The judge `gull` does what a trace demands; `deaf` never does. Without a demand both draw at random."""

    def __call__(self, request: Request) -> Reply:
        if request.body["model"] == "gull" and not request.is_direct_question:
            texts = request.text.split(" SECOND\n")
            if request.schema == "SidePreference":
                demands = [any(wording in text for wording in load_instructions("en")["preference"]) for text in texts]
                if any(demands):
                    return completion(json.dumps({"reason": "So.", "better": "FIRST" if demands[0] else "SECOND"}))
            else:
                for ruling in Ruling:
                    if any(w.replace("{verdict}", ruling) in request.text for w in load_instructions("en")["verdict"]):
                        return completion(json.dumps(review_answer(ruling is Ruling.VALID)))
        if request.schema == "SidePreference":
            return completion(json.dumps({"reason": "So.", "better": "FIRST"}))
        # The verdict depends on the trace only by its score, so that an instruction alone changes nothing.
        is_valid = "Score" in request.text and "-" not in request.text.rsplit("Score of", 1)[-1]
        return (
            super().__call__(request) if request.is_direct_question else completion(json.dumps(review_answer(is_valid)))
        )


def test_the_judge_that_obeys_is_named_on_page_one(tmp_path: Path) -> None:
    """Rates of obeying for both verdicts and for preferences; the table, and the caution."""
    url = f"sqlite:///{tmp_path}/a.db"
    with FakeServer(ObedientScript(0)) as server:
        config = audit(server.url, ("gull", "deaf"), n_models=2)
        run_audit(AuditConfig.model_validate(config), storage=url)
        planted(ExperimentContext(url), "scripted", N_TRACES)
        n_requests = len(server.requests)
        result = run_checked(planted, ExperimentContext(url), "scripted", N_TRACES)
        assert len(server.requests) == n_requests, "recorded answers are reused"
    report = open_audit("scripted", storage=url).report()
    gull, deaf = report.panel.obedience
    for row, rate in ((gull, 1.0), (deaf, 0.0)):
        assert row.verdicts.value == row.valid.value == row.invalid.value == row.preferences.value == rate
        assert row.verdicts.n == row.valid.n + row.invalid.n == N_TRACES
    assert result.data[-2:] == report.panel.obedience
    page = render_report(report, "markdown")
    cautions = [text for text in list_cautions(report) if "obey" in text]
    named = [("gull" in text, "deaf" in text, "gave" in text) for text in cautions]
    assert named == [(True, False, True), (True, False, False)], cautions
    assert all(text in page for text in cautions)
    assert "gull (100% of 15, at least 48%)" in cautions[0]
    assert "obedience" in [table.id for table in build_panel_tables(report.panel)]
    assert_report_shows_figures(report, "panel")


def test_each_language_has_five_wordings_of_both_kinds_which_the_rule_marks_with_a_verdict() -> None:
    """Each wording has its place for the verdict; the same trace has the same wording for both."""
    for language in LANGUAGES:
        wordings = load_instructions(language)
        n_by_kind = {kind: len(set(texts)) for kind, texts in wordings.items()}
        assert n_by_kind == {"verdict": N_WORDINGS, "preference": N_WORDINGS}
        for wording in wordings["verdict"]:
            assert wording.count("{verdict}") == 1
            assert addresses_judge(wording.replace("{verdict}", "INVALID"), language)
        held_out = SAMPLES[language]["addresses"]
        assert not set(held_out) & {*wordings["verdict"], *wordings["preference"]}
    trace = Trace("m", Cell("Japan", "divorce"), 0, Outcome.OK, 0.5, "They mind it.", language="en")
    texts = [plant_instruction(trace, 7, ruling).text or "" for ruling in (Ruling.VALID, Ruling.INVALID)]
    assert texts[0].replace("VALID", "INVALID") == texts[1]
    assert (resources.files("auditor.prompts") / "en" / "planted_instructions.toml").is_file()
