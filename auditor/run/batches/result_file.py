"""Reading a file of results line by line, whatever is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO

from auditor.models.batches.provider import BatchCallResponse, BatchProvider
from auditor.models.transport import MAX_RESPONSE_BYTES


def iter_call_responses(file: IO[bytes], provider: BatchProvider) -> Iterator[BatchCallResponse | None]:
    """What each line says; None for one that makes no sense. No more than one answer's size is read at once."""
    while line := file.readline(MAX_RESPONSE_BYTES):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        yield provider.parse_line(found) if isinstance(found, dict) else None
