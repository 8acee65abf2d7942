"""Labels from the draw to the report: an audit of simulated models, with people's labels of known errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from auditor.cli.demo import build_demo_config
from auditor.config import CheckSection, DirectProbe, Probes, ReviewProbe
from auditor.domain.labels import LabelKind
from auditor.metrics.judges.accuracy import judge_quality
from auditor.metrics.labels.prediction_powered import prediction_powered_mean
from auditor.reports.data.build import build_report
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.judge_quality.labelled_traces import read_trace_key
from auditor.reports.sections.differences_document import build_difference_document
from auditor.review.label_sampling import draw_label_sample
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.labels import append_labels, load_label_frame, load_label_sample
from auditor.storage.votes import load_votes
from tests.reports.sections.node_text import text_of
from tests.support.known import known
from tests.support.planted_labels import make_label, plant_truth

N_SAMPLED = 160
ERROR_RATE = 0.15
"""Share of traces on which people say the opposite of most judges."""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Audit]]:
    """A small audit of simulated models, of which one rater has labelled a stratified random sample."""
    url = f"sqlite:///{tmp_path_factory.mktemp('simulated')}/audit.db"
    config = build_demo_config()
    assert config.survey is not None
    small = {
        "survey": config.survey.model_copy(update={"topics": config.survey.topics[:6]}),
        "probes": Probes(direct=DirectProbe(samples=1), review=ReviewProbe(traces="all")),
    }
    run_audit(config.model_copy(update=small), storage=url)
    with open_database(url) as db:
        audit = audits.get_audit(db, config.name)
        draw_label_sample(db, audit, LabelKind.TRACE, N_SAMPLED)
        truth = plant_truth(load_votes(db, audit.id), ERROR_RATE)
        sample = load_label_sample(db, audit.id, LabelKind.TRACE)
        keys = [read_trace_key(row.unit.parts) for row in sample]
        append_labels(db, audit.id, [make_label(key, is_valid=truth.get(key, True)) for key in keys])
        yield db, audit


def test_the_report_has_the_figures_that_the_metrics_give(labelled: tuple[Database, Audit]) -> None:
    db, audit = labelled
    quality = known(build_report(db, audit.name).judge_quality)
    assert (quality.labels, quality.not_used, quality.raters) == (N_SAMPLED, 0, ["rater 1"])
    votes = load_votes(db, audit.id)
    truth = plant_truth(votes, ERROR_RATE)
    frame = known(load_label_frame(db, audit.id, LabelKind.TRACE))
    strata = {unit.parts: "/".join(stratum) for unit, stratum in frame.units}
    sampled = {row.unit.parts for row in load_label_sample(db, audit.id, LabelKind.TRACE)}
    parts = [(*key[:3], str(key[3])) for key in votes.traces]
    labels = np.array(
        [float(truth[key]) if part in sampled else np.nan for key, part in zip(votes.traces, parts, strict=True)]
    )
    stratum = np.array([strata[part] for part in parts])
    for row in quality.judges:
        verdicts = np.full(len(parts), np.nan)
        is_by_judge = np.array(votes.judges)[votes.judge_index] == row.judge
        verdicts[votes.trace_index[is_by_judge]] = votes.valid[is_by_judge]
        has = ~np.isnan(verdicts)
        expected = judge_quality(verdicts[has], labels[has], strata=stratum[has])
        for name in ("sensitivity", "specificity", "accuracy", "kappa"):
            measured, direct = getattr(row, name), getattr(expected, name)
            assert [measured.value, measured.ci_low, measured.ci_high] == pytest.approx(
                [direct.value, direct.ci_low, direct.ci_high]
            )
    n = np.bincount(votes.trace_index, minlength=len(parts))
    panel = np.bincount(votes.trace_index, votes.valid, minlength=len(parts)) / n
    for share in quality.models:
        is_of_model = np.array([key[0] == share.model for key in votes.traces])
        corrected = prediction_powered_mean(panel[is_of_model], labels[is_of_model], strata=stratum[is_of_model])
        assert share.corrected.value == pytest.approx(corrected.value)
        people = np.mean([valid for key, valid in truth.items() if key[0] == share.model])
        assert abs((share.corrected.value or 0) - people) < 0.15
        assert share.excess.value == pytest.approx(panel[is_of_model].mean() - (corrected.value or 0))


def test_compare_and_check_use_corrected_shares_unless_asked_not_to(labelled: tuple[Database, Audit]) -> None:
    db, audit = labelled
    report = build_report(db, audit.name)
    assert report.judge_quality is not None
    shares = report.judge_quality.corrected_shares
    assert set(shares) == {row.model for row in report.peer_agreement}
    thresholds = CheckSection.model_validate({"min_peer_agreement": 0.5, "min_coverage": 0.0})
    for gate in check_report(report, thresholds).gates:
        if gate.name == "min_peer_agreement":
            assert gate.corrected
            assert gate.value == shares[gate.subject].corrected_elsewhere.value
            assert gate.message.endswith("(corrected by people’s labels)")
    agreement = {row.model: row.agreement.value for row in report.peer_agreement}
    result = check_report(report, thresholds, use_corrections=False)
    uncorrected = [gate for gate in result.gates if gate.name == "min_peer_agreement"]
    assert {gate.subject: gate.value for gate in uncorrected} == agreement
    assert not any(gate.corrected for gate in uncorrected)
    comparison = compare_targets(db, [parse_target(audit.name)])
    for pair in comparison.pairs:
        first, second = (shares[label.rpartition(":")[2]] for label in (pair.first, pair.second))
        compared = known(pair.corrected_shares)
        assert (compared.first, compared.second) == (first.corrected, second.corrected)
        assert compared.difference.value == pytest.approx((second.corrected.value or 0) - (first.corrected.value or 0))
        assert compared.judges == pytest.approx((second.judges.value or 0) - (first.judges.value or 0))
    assert "after correction" in text_of(build_difference_document(comparison).sections)
    plain = compare_targets(db, [parse_target(audit.name)], use_corrections=False)
    assert all(pair.corrected_shares is None for pair in plain.pairs)
    assert "after correction" not in text_of(build_difference_document(plain).sections)
