"""Figures of the probe `logic` that published tables are compared with. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import floor
from typing import Literal

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import Averaging
from auditor.metrics.logic.ranking_methods import PAIRS_CALIBRATED, PAIRS_GREEDY
from auditor.metrics.logic.transitivity import PartialTransitivity
from auditor.probes.logic.figures.build import MAX_RANKED_ITEMS, MIN_ASKED_SHARE, MIN_RANKED_ITEMS
from auditor.probes.logic.figures.schema import LogicReport, LogicRow
from auditor.replications.definitions import MeasuredAudit
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_percent

GroupShare = Literal["commutativity", "human_agreement"]


def _read_by_wording(report: Report, model: str, *, share: GroupShare) -> dict[str, Estimate]:
    """A share as the mean over sets, by wording of the question."""
    rows = [row for row in logic.wordings if row.judge == model] if (logic := report.find(LogicReport)) else []
    figures = ((row.wording, getattr(row.instances, share)) for row in rows if row.wording is not None)
    return {
        f"wording {wording + 1}": Estimate(
            figure.value, figure.n, figure.ci_low, figure.ci_high, figure.reason, figure.resampled
        )
        for wording, figure in figures
    }


LOGIC_GROUP_FIGURES: Mapping[str, Callable[[Report, str], Mapping[str, Estimate]]] = {
    "logic.commutativity.by_wording": partial(_read_by_wording, share="commutativity"),
    "logic.human_agreement.by_wording": partial(_read_by_wording, share="human_agreement"),
}
"""Readers of a model's figures by wording, by the names that presets use."""


NOT_MEASURED = "the audit did not measure it"
NOT_RANKED = (
    f"no set of {MIN_RANKED_ITEMS} to {MAX_RANKED_ITEMS} items has at least {MIN_ASKED_SHARE:.0%} of its pairs asked "
    "in both orders"
)
NO_INTERVAL = "a count of the data"
MAX_SHARE_UNITS = 10_000
"""Steps that shares are rounded down to, so that a share below 1 is never 100%."""
MAX_K = 8
"""Largest subset whose transitivity figure 9 shows."""
Share = Literal["commutativity", "negation", "self_agreement", "human_agreement"]
StageColumn = Literal["transitivity", "commutativity", "rows", "rows_per_set"]


def _find_row(report: Report, model: str) -> LogicRow | None:
    """The figures of a model's comparisons; None if it made none."""
    rows = logic.judges if (logic := report.find(LogicReport)) else []
    return next((row for row in rows if row.judge == model), None)


def _to_estimate(estimate: Estimate, remark: str = "") -> Estimate:
    """An estimate without the further fields of its kind, and with a remark if there is a value."""
    reason = estimate.reason if estimate.value is None else "; ".join(filter(None, (estimate.reason, remark))) or None
    return Estimate(estimate.value, estimate.n, estimate.ci_low, estimate.ci_high, reason, estimate.resampled)


def _with_pairs_present(estimate: PartialTransitivity) -> Estimate:
    """Transitivity with the share of pairs that are present, if it is not all: a missing pair cannot be in a cycle."""
    present = estimate.pairs_present
    if present is None or present == 1:
        return _to_estimate(estimate)
    percent = format_percent(floor(present * MAX_SHARE_UNITS), MAX_SHARE_UNITS)
    return _to_estimate(estimate, f"{percent} of the pairs have a preference")


def _read_share(report: Report, model: str, *, share: Share, is_pooled: bool) -> Estimate:
    """A share of a model's comparisons, as the mean over sets or pooled."""
    row = _find_row(report, model)
    if row is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    return _to_estimate(getattr(row if is_pooled else row.instances, share))


def _read_transitivity(report: Report, model: str, *, k: int, is_pooled: bool) -> Estimate:
    """The share of a model's subsets of k items without a cycle, by the comparisons there are, in one order each."""
    row = _find_row(report, model)
    entries = [entry for entry in row.transitivity if entry.k == k and not entry.calibrated] if row else []
    if not entries:
        return Estimate(None, 0, reason=NOT_MEASURED)
    return _with_pairs_present(entries[0].partial if is_pooled else entries[0].partial_instances)


def _read_ranking(report: Report, model: str, *, method: str) -> Estimate:
    """Mean over sets of Spearman's rho of a ranking with people's scores."""
    rows = logic.rankings if (logic := report.find(LogicReport)) else []
    estimates = [row.people for row in rows if (row.judge, row.method) == (model, method)]
    return estimates[0] if estimates else Estimate(None, 0, reason=NOT_RANKED)


def _read_wordings_correlation(report: Report, model: str, *, averaged: Averaging) -> Estimate:
    """Correlation over wordings of a model's commutativity with its agreement with people."""
    links = logic.links if (logic := report.find(LogicReport)) else []
    over = f"wordings, {model}"
    correlations = [link.r for link in links if (link.over, link.x, link.averaged) == (over, "commutativity", averaged)]
    return _to_estimate(correlations[0]) if correlations else Estimate(None, 0, reason="it needs three wordings")


def _read_stage(audit: MeasuredAudit, *, stage: str, is_negated: bool, column: StageColumn) -> Estimate:
    """A figure of people's comparisons at a stage of REPAIR; n counts sets."""
    repair = audit.trials["repair"]
    for summary in repair["stages"]:
        if (summary.stage, summary.negated) == (stage, is_negated):
            figures: dict[StageColumn, Estimate] = {
                "transitivity": _with_pairs_present(summary.transitivity),
                "commutativity": _to_estimate(summary.commutativity),
                "rows": Estimate(summary.rows, repair["sets"], reason=NO_INTERVAL),
                "rows_per_set": summary.rows_per_set,
            }
            return figures[column]
    return Estimate(None, 0, reason=NOT_MEASURED)


_STAGES = {
    "raw": ("raw", False),
    "perturbed": ("perturbed", False),
    "repaired": ("repaired", False),
    "repaired.negated": ("repaired", True),
}
_STAGE_COLUMNS: tuple[StageColumn, ...] = ("transitivity", "commutativity", "rows", "rows_per_set")

LOGIC_FIGURES: Mapping[str, Callable[[MeasuredAudit], Estimate]] = {
    f"repair.{name}.{column}": partial(_read_stage, stage=stage, is_negated=is_negated, column=column)
    for name, (stage, is_negated) in _STAGES.items()
    for column in _STAGE_COLUMNS
    if column != "commutativity" or stage == "repaired"  # people compared each pair in one order
}
"""Readers of figures of people's comparisons, by the names that presets use."""

LOGIC_MODEL_FIGURES: Mapping[str, Callable[[Report, str], Estimate]] = {
    **{
        f"logic.{share}{suffix}": partial(_read_share, share=share, is_pooled=bool(suffix))
        for share in ("commutativity", "negation", "self_agreement", "human_agreement")
        for suffix in ("", ".pooled")
    },
    **{
        f"logic.transitivity.{k}{suffix}": partial(_read_transitivity, k=k, is_pooled=bool(suffix))
        for k in range(3, MAX_K + 1)
        for suffix in ("", ".pooled")
    },
    "logic.pairs": partial(_read_ranking, method=PAIRS_GREEDY),
    "logic.pairs.calibrated": partial(_read_ranking, method=PAIRS_CALIBRATED),
    "logic.wordings": partial(_read_wordings_correlation, averaged="instances"),
    "logic.wordings.pooled": partial(_read_wordings_correlation, averaged="pooled"),
}
"""Readers of a report's figures of one model's comparisons, by the names that presets use."""
