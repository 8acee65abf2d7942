"""The document of a comparison of series of scores, of audits, or of two judges."""

from auditor.reports.sections.comparison.document import build_comparison_document

__all__ = ["build_comparison_document"]
