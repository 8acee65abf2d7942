"""Describe the structure of an answer in words, for servers that cannot be sent its JSON schema as a parameter."""

from __future__ import annotations

import functools
import json

from auditor.domain import ENGLISH
from auditor.models.structured import find_schema, limited_schema
from auditor.prompts import load_prompt

STRUCTURE_PROMPT = "structure"


@functools.cache
def describe_structure(schema_name: str, max_words: int, language: str = ENGLISH) -> str:
    """The instruction to answer with JSON of a schema, which is added to the last user message.

    Args:
        schema_name: name of the schema, see `find_schema`.
        max_words: limit on each text of the structure.
        language: ISO 639-1 code of the language of the question.
    """
    schema_text = json.dumps(limited_schema(find_schema(schema_name), max_words), ensure_ascii=False)
    return load_prompt(STRUCTURE_PROMPT, language).render(schema=schema_text)[-1].content
