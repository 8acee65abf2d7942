"""The JSON Schema of a report.

`python -m auditor.reports.data.json_schema > docs/report.schema.json` brings the stored one up to date.
"""

from __future__ import annotations

import json

from auditor.reports.data.report_schema import Report

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_json_schema() -> str:
    """The JSON Schema of a report as indented JSON, as stored in docs/report.schema.json."""
    schema = {"$schema": JSON_SCHEMA_DIALECT, **Report.model_json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(render_json_schema(), end="")
