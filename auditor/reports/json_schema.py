"""The JSON Schema of a report.

`python -m auditor.reports.json_schema > docs/report.schema.json` brings the stored one up to date.
"""

from __future__ import annotations

import json

from auditor.reports.report_schema import Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The schema as it is kept in docs/."""
    schema = {"$schema": DIALECT, **Report.model_json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
