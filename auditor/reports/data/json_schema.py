"""The JSON Schema of a report.

`make schema` brings the stored one up to date.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from auditor.config.base import read_class_descriptions
from auditor.reports.data.report_schema import Report

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class DescribedJsonSchema(GenerateJsonSchema):
    """Generator of a JSON Schema in which fields of dataclasses, too, are described by the strings after them."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """The JSON Schema of a dataclass."""
        json_schema = super().dataclass_schema(schema)
        for name, field in json_schema["properties"].items():
            for base in schema["cls"].__mro__[:-1]:  # without `object`, whose source cannot be read
                if name in (descriptions := read_class_descriptions(base)):
                    field.setdefault("description", descriptions[name])
        return json_schema


def render_json_schema() -> str:
    """The JSON Schema of a report as indented JSON, as stored in docs/report.schema.json."""
    schema = Report.model_json_schema(mode="serialization", schema_generator=DescribedJsonSchema)
    return json.dumps({"$schema": JSON_SCHEMA_DIALECT, **schema}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(render_json_schema(), end="")
