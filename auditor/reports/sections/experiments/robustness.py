"""Document of the experiment `robustness`: would another design have said the same?"""

from __future__ import annotations

from auditor.reports.data.sampling.robustness import RobustnessReport
from auditor.reports.document import Document
from auditor.reports.sections.experiments.common import build_experiment_document


def build_robustness_document(report: RobustnessReport) -> Document:
    """Build the document: at most 600 words, one figure and one table."""
    return build_experiment_document(report.audit, "robustness", [], [], "No run of the design has a score.")
