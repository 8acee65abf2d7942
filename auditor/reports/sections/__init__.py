"""Sections of reports: from what was measured to documents. The only place with the sentences of reports."""
