"""The API key of the hostile cases, in all encodings in which a server may echo it or a file may contain it."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.parse
import zlib
from collections.abc import Iterator
from pathlib import Path

KEY = 'sk-canary/7+"Q=0123456789abcdef'
"""A key with characters that JSON, percent encoding and base64 encode differently."""


def echoed(form: str) -> str:
    """The key in the encoding of a body kind, as text to put into a JSON string."""
    return {
        "key-plain": KEY, "key-bearer": f"Authorization: Bearer {KEY}",
        "key-base64": base64.b64encode(f"user:{KEY}".encode()).decode(), "key-hex": KEY.encode().hex(),
        "key-percent": urllib.parse.quote(KEY, safe=""), "key-json": json.dumps({"key": KEY}),
    }[form]  # fmt: skip


def _forms() -> frozenset[bytes]:
    """All encodings of the key, none of which may occur in a file or text."""
    raw = KEY.encode()
    written = {raw, json.dumps(KEY)[1:-1].encode(), json.dumps(KEY)[1:-1].replace("/", "\\/").encode()}
    written |= {json.dumps(json.dumps(KEY)[1:-1])[1:-1].encode()}
    written |= {raw.hex().encode(), raw.hex().upper().encode()}
    quoted = urllib.parse.quote(KEY, safe="")
    written |= {quoted.encode(), quoted.lower().encode()}
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # Leave out the base64 characters that depend on the bytes before and after the key.
            text = encode(b"\0" * offset + raw)
            written.add(text[4 if offset else 0 : -4])
    return frozenset(written)


FORMS = _forms()


def leaks_in(content: bytes) -> list[bytes]:
    """The encodings of the key that occur in some bytes."""
    return [form for form in FORMS if form in content]


def leaks_in_folder(folder: Path) -> list[str]:
    """Files and decompressed database values that contain the key in any encoding, as messages."""
    leaks = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        leaks += [f"{path.name}: {form!r}" for form in leaks_in(content)]
        if content.startswith(b"SQLite format 3\0"):
            leaks += [f"{path.name} (unpacked): {form!r}" for blob in _unpacked(path) for form in leaks_in(blob)]
    return leaks


def _unpacked(path: Path) -> Iterator[bytes]:
    """All binary values of a database, decompressed if possible."""
    connection = sqlite3.connect(path)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes):
                        try:
                            yield zlib.decompress(value)
                        except zlib.error:
                            yield value
    finally:
        connection.close()
