"""The JSON Schema of a report.

`make schema` brings the stored one up to date.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.json_schema import GenerateJsonSchema

from auditor.config.base import read_class_descriptions
from auditor.config.installed_probes import list_folder_probes
from auditor.reports.data.probe_reports import UnavailableProbe
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
    """The JSON Schema of a report as indented JSON, as stored in docs/report.schema.json.

    It has the figures of all probes in folders of the program, and of no other, whatever is installed.
    """
    report_class = _add_figures_of_probes(Report)
    schema = report_class.model_json_schema(mode="serialization", schema_generator=DescribedJsonSchema)
    return json.dumps({"$schema": JSON_SCHEMA_DIALECT, **schema}, indent=2, ensure_ascii=False) + "\n"


def _add_figures_of_probes(report_class: type[Report]) -> type[Report]:
    """Derive a report whose field `probes` has a field for each probe in a folder of the program without one."""
    probes = {probe.name: probe.call_optional("report_class", returns=type) for probe in list_folder_probes()}
    fields: dict[str, Any] = {
        name: (figures | UnavailableProbe, None) for name, figures in probes.items() if figures is not None
    }
    if not fields:
        return report_class
    declared = report_class.model_fields["probes"]
    all_probes: type[BaseModel] = create_model("ProbeFigures", __config__=ConfigDict(extra="allow"), **fields)
    annotated: Any = (all_probes, declared)
    return create_model(report_class.__name__, __base__=report_class, __doc__=report_class.__doc__, probes=annotated)


if __name__ == "__main__":
    print(render_json_schema(), end="")
