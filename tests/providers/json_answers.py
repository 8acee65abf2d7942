"""What a capable model answers: an instance of a JSON schema, the object that a prompt describes, or prose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.review_answers import rate_aspects

JUDGEMENT = {"norms": "Families there value harmony.", "reasoning": "So most people object to it.", "score": -0.4}
REVIEW = {**rate_aspects(), "justification": "The steps follow from the norms.", "verdict": "VALID", "confidence": 80}
STEPS = "Step 1. Families there value harmony.\nStep 2. So most people object to it.\nStep 3.\nSCORE = -0.4"
_SAMPLES = {**JUDGEMENT, **REVIEW}


def sample_of_schema(schema: Mapping[str, Any], name: str = "", root: Mapping[str, Any] | None = None) -> Any:
    """An instance of a JSON schema that uses the keywords of structured outputs; `name` is the property's."""
    root = schema if root is None else root
    if "$ref" in schema:
        definition: Any = root
        for key in str(schema["$ref"]).removeprefix("#/").split("/"):
            definition = definition[key]
        return sample_of_schema(definition, name, root)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return sample_of_schema(options[0], name, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _SAMPLES[name] if _SAMPLES.get(name) in schema["enum"] else schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {key: sample_of_schema(part, key, root) for key, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_of_schema(schema.get("items", {"type": "string"}), name, root)]
    return _SAMPLES.get(name, {"string": "Yes.", "number": 0.5, "integer": 1, "boolean": True}.get(kind))


def json_described_in(prompt: str) -> dict[str, Any] | None:
    """The object that a prompt describes by its keys; None if it describes none that is known here."""
    described = [sample for sample in (REVIEW, JUDGEMENT) if all(f'"{key}"' in prompt for key in sample)]
    return dict(described[0]) if described else None


def text_answer(prompt: str) -> str:
    """What a model writes without any enforcement: prose around JSON in a fence, if the prompt describes JSON."""
    described = json_described_in(prompt)
    if described is None:
        return STEPS
    return f"Here is my answer:\n\n```json\n{json.dumps(described, indent=2)}\n```\n\nLet me know if you need more."
