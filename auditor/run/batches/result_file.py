"""Read a batch's file of results line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO

from auditor.models.batches.provider import BatchCallResponse, BatchProvider
from auditor.models.transport import MAX_RESPONSE_BYTES


def iter_call_responses(file: IO[bytes], provider: BatchProvider) -> Iterator[BatchCallResponse | None]:
    """Yield the response in each line; None for an invalid line. At most the size of one response is read at once."""
    while line := file.readline(MAX_RESPONSE_BYTES):
        if not line.strip():
            continue
        try:
            parsed_line = json.loads(line)
        except (ValueError, RecursionError):
            parsed_line = None
        yield provider.parse_line(parsed_line) if isinstance(parsed_line, dict) else None
