"""The document of differences between series of scores, audits, or two judges."""

from auditor.reports.sections.differences.document import (
    build_difference_document,
    build_probe_difference_document,
)

__all__ = ["build_difference_document", "build_probe_difference_document"]
