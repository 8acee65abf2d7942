"""Remove secrets from all text that is stored, shown or sent.

`register_secrets` is called where keys, tokens and passwords are read, before they are used. A provider can repeat a
secret in any field and in several encodings, so all text from outside goes through `redact`.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from auditor.lazy_imports import import_when_used

if not TYPE_CHECKING:
    np = import_when_used("numpy")
else:
    import numpy as np

MIN_SECRET_CHARS = 8
"""Shorter secrets are not removed: they occur in ordinary words."""
MIN_NEEDLE_BYTES = 7
"""So that every searched form contains an aligned word of four bytes."""
REPLACEMENT = "[key removed]"
MAX_NESTED_ESCAPES = 4
"""Levels of escapes that are undone, such as JSON within a JSON string."""
MAX_SEQUENTIAL_SEARCH_SIZE = 20_000
"""Bytes of data times encoded secrets, up to which searching for one secret after another is faster than the table."""
GRAM_BYTES = 4
"""Bytes of a word that is looked up in the table."""
HASH_BITS = 20
"""Bits of a word's hash; the table has 2**20 entries (1 MB)."""

OffsetMap = Callable[[int], int]
"""Maps an offset in unescaped data to the offset in the original data."""


class Redactor:
    """Removes secrets in plain text, JSON escapes, percent escapes, hexadecimal, base64, UTF-16 and UTF-32.

    The search takes linear time, which hardly depends on the number of secrets: it looks up each aligned word of four
    bytes in a table of the words that occur in encoded secrets, and compares secrets only at the hits.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        """Build the table of encoded secrets.

        Args:
            secrets: secrets shorter than `MIN_SECRET_CHARS` are ignored.
        """
        self.secrets = frozenset(secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS)
        self._needles = sorted({form for secret in self.secrets for form in encoded_forms(secret)}, key=len)
        self._by_gram: dict[int, list[tuple[bytes, int]]] = {}
        for needle in self._needles:
            for start in range(GRAM_BYTES):
                gram = int.from_bytes(needle[start : start + GRAM_BYTES], "little")
                self._by_gram.setdefault(gram, []).append((needle, start))
        self._escapes = re.compile(_escape_pattern(self.secrets))
        if self._needles:
            self._gram_table = self._hash_table()

    def redact_text(self, text: str, *, complete: bool = True) -> str:
        """Replace every secret in a text by `REPLACEMENT`.

        Args:
            text: any text, lone surrogates included.
            complete: False if the text was cut off: an end that may be the beginning of a secret is removed as well.
        """
        if not self._needles:
            return text
        data = text.encode("utf-8", "surrogatepass")
        redacted = self.redact_bytes(data, complete=complete)
        return text if redacted is data else redacted.decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes, *, complete: bool = True) -> bytes:
        """As `redact_text`, for bytes; the same object if they hold no secret."""
        if not self._needles:
            return data
        spans, end = [], len(data)
        for unescaped, to_source_offset in self._unescape_levels(data):
            spans += [
                (to_source_offset(start), to_source_offset(stop)) for start, stop in self._find_secrets(unescaped)
            ]
            if not complete:
                end = min(end, to_source_offset(self._safe_end(unescaped)))
        return _replace_spans(data, spans, end) if spans or end < len(data) else data

    def _hash_table(self) -> Any:
        """Array of booleans by hash: whether a word of an encoded secret has this hash."""
        table = np.zeros(1 << HASH_BITS, dtype=np.bool_)
        table[_hash_words(np.fromiter(self._by_gram, dtype="<u4"))] = True
        return table

    def _find_secrets(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each encoded secret.

        Every needle has at least seven bytes, so it contains an aligned word of four bytes.
        """
        if len(data) * len(self._needles) <= MAX_SEQUENTIAL_SEARCH_SIZE:
            yield from (
                (match.start(), match.end())
                for needle in self._needles
                if needle in data
                for match in re.finditer(re.escape(needle), data)
            )
            return

        words = np.frombuffer(data, dtype="<u4", count=len(data) // GRAM_BYTES)
        for index in np.flatnonzero(self._gram_table[_hash_words(words)]).tolist():
            for needle, offset in self._by_gram.get(int(words[index]), ()):
                start = index * GRAM_BYTES - offset
                if start >= 0 and data.startswith(needle, start):
                    yield start, start + len(needle)

    def _unescape_levels(self, data: bytes) -> Iterator[tuple[bytes, OffsetMap]]:
        """Yield the original data, then the data with one more level of escapes undone each, with their offset maps."""
        to_source_offset: OffsetMap = _same_offset
        yield data, to_source_offset
        for _ in range(MAX_NESTED_ESCAPES):
            if not self._escapes.search(data):
                return
            data, to_outer_offset = _unescape_once(data)
            to_source_offset = _compose_offset_maps(to_source_offset, to_outer_offset)
            yield data, to_source_offset

    def _safe_end(self, data: bytes) -> int:
        """The offset to cut data at, so that it does not end with the beginning of an encoded secret."""
        end = len(data) - len(match.group()) if (match := PARTIAL_ESCAPE.search(data[-8:])) else len(data)
        max_overlap = min(len(self._needles[-1]), end)  # needles are sorted: the last is the longest
        tail = data[end - max_overlap : end]
        return min(
            [
                end,
                *(
                    end
                    - next(
                        (
                            length
                            for length in range(min(len(tail), len(needle)), 0, -1)
                            if tail.endswith(needle[:length])
                        ),
                        0,
                    )
                    for needle in self._needles
                ),
            ]
        )


def encoded_forms(secret: str) -> Iterator[bytes]:
    """Yield the secret in every searched encoding, apart from escapes of single characters.

    Base64 depends on the number of preceding bytes modulo three: one form for each, without the characters that also
    encode neighbouring bytes.
    """
    data = secret.encode("utf-8", "surrogatepass")
    yield data
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):  # a response body is stored as bytes
        yield secret.encode(encoding, "surrogatepass")
    if any(ord(char) > 0xFFFF for char in secret):  # JSON escapes such a character as two surrogates
        utf16 = secret.encode("utf-16-be")
        code_units = (int.from_bytes(utf16[i : i + 2]) for i in range(0, len(utf16), 2))
        yield "".join(map(chr, code_units)).encode("utf-8", "surrogatepass")
    yield data.hex().encode()
    yield data.hex().upper().encode()
    for n_bytes_before in range(3):
        encoded = base64.b64encode(b"\0" * n_bytes_before + data)
        # A base64 character holds six bits: the slice leaves out those that share bits with a neighbouring byte.
        stable_part = encoded[(8 * n_bytes_before + 5) // 6 : 8 * (n_bytes_before + len(data)) // 6]
        yield stable_part
        yield stable_part.replace(b"+", b"-").replace(b"/", b"_")
    yield from _unescaped_forms(data)


def _unescaped_forms(data: bytes) -> Iterator[bytes]:
    """Yield a secret that itself looks escaped ("é%41") with what looks like its escapes undone, once per level."""
    while (unescaped := _unescape_once(data)[0]) != data and len(unescaped) >= MIN_NEEDLE_BYTES:
        yield unescaped
        data = unescaped


BACKSLASH = ord("\\")
HEX_VALUES = [int(chr(i), 16) if chr(i) in "0123456789abcdefABCDEF" else 255 for i in range(256)]
"""Value of a hexadecimal digit by its byte; 255 for any other byte."""
PARTIAL_ESCAPE = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?)\Z")
"""An incomplete escape at the end of truncated data."""


def _escape_pattern(secrets: Iterable[str]) -> bytes:
    """Pattern of the escapes of characters that occur in secrets or in base64; others need not be undone."""
    chars = set("".join(secrets))
    if all(char.isascii() for char in chars):
        pattern = rb"\\u00[2-7][0-9a-fA-F]|\\/|\\\\|%[2-7][0-9a-fA-F]"
    else:
        pattern = rb"\\u[0-9a-fA-F]{4}|\\/|\\\\|%[0-9a-fA-F]{2}"
    return pattern + (rb'|\\"' if '"' in chars else b"")


def _unescape_once(data: bytes) -> tuple[bytes, OffsetMap]:
    """Undo one level of JSON and percent escapes; returns the data and the map of its offsets.

    It is vectorized over the bytes, since a text may consist of escapes only.
    """
    size = len(data)
    chars = np.frombuffer(data + b"\0" * 5, dtype=np.uint8)
    next_chars, hex_values = chars[1 : size + 1], np.array(HEX_VALUES, dtype=np.uint8)[chars]
    # hex_ahead[i][j] is the hexadecimal value of the byte i places after byte j; 255 if it is no digit.
    hex_ahead = [hex_values[i : i + size] for i in range(6)]
    chars = chars[:size]
    is_backslash, position = chars == BACKSLASH, np.arange(size, dtype=np.int32)
    position_in_run = position - np.maximum.accumulate(np.where(is_backslash, -1, position)) - 1
    # In a run of backslashes, the first escapes the second, the third the fourth, and so on.
    escapes_next = is_backslash & (position_in_run % 2 == 0)
    percent_escapes = np.flatnonzero((chars == ord("%")) & (hex_ahead[1] < 16) & (hex_ahead[2] < 16))
    simple_escapes = np.flatnonzero(escapes_next & np.isin(next_chars, list(b'/"\\')))
    is_unicode = escapes_next & (next_chars == ord("u"))
    for i in range(2, 6):
        is_unicode &= hex_ahead[i] < 16
    unicode_escapes = np.flatnonzero(is_unicode)

    unescaped, is_kept = chars.copy(), np.ones(size, dtype=np.bool_)
    unescaped[simple_escapes], is_kept[simple_escapes + 1] = next_chars[simple_escapes], False
    unescaped[percent_escapes] = hex_ahead[1][percent_escapes] * 16 + hex_ahead[2][percent_escapes]
    for i in (1, 2):
        is_kept[percent_escapes + i] = False
    for i in range(1, 6):
        is_kept[unicode_escapes + i] = False
    _write_utf8(
        unicode_escapes, [hex_ahead[i][unicode_escapes].astype(np.int32) for i in range(2, 6)], unescaped, is_kept
    )
    offsets = np.append(np.flatnonzero(is_kept), size)
    return unescaped[is_kept].tobytes(), lambda offset: int(offsets[offset])


def _write_utf8(starts: Any, hex_values: list[Any], unescaped: Any, is_kept: Any) -> None:
    """Overwrite each `\\uXXXX` with the UTF-8 of its code point.

    Args:
        starts: offsets of the escapes' backslashes.
        hex_values: four arrays, the values of the escapes' digits.
        unescaped: bytes of the data, changed in place.
        is_kept: whether a byte stays, changed in place.
    """
    all_code_points = (hex_values[0] << 12) | (hex_values[1] << 8) | (hex_values[2] << 4) | hex_values[3]
    unescaped[starts] = all_code_points & 0x7F
    # For sequences of two, then of three bytes: lowest code point, marker of the first byte, shift of each byte.
    for low, lead, shifts in ((0x80, 0xC0, (6, 0)), (0x800, 0xE0, (12, 6, 0))):
        needs_sequence = all_code_points >= low
        positions, code_points = starts[needs_sequence], all_code_points[needs_sequence]
        for i, shift in enumerate(shifts):
            unescaped[positions + i] = (
                (0x80 | (code_points >> shift) & 0x3F) if i else (lead | code_points >> shift)
            ) & 0xFF
            is_kept[positions + i] = True


def _hash_words(words: Any) -> Any:
    """Multiplicative hashes of an array of 32-bit words, each of `HASH_BITS` bits; the factor is a large odd number."""
    return (words * words.dtype.type(0x9E3779B1)) >> (32 - HASH_BITS)


def _replace_spans(data: bytes, spans: Iterable[tuple[int, int]], end: int) -> bytes:
    """Replace spans that start before `end` by `REPLACEMENT`, and cut the data at `end`; spans may overlap."""
    pieces, position = [], 0
    for start, stop in sorted(spans):
        if stop <= position or start >= end:
            continue
        pieces += [data[position : max(start, position)], REPLACEMENT.encode() if start >= position else b""]
        position = stop
    return b"".join([*pieces, data[position : max(end, position)]])


def _same_offset(offset: int) -> int:
    """The offset map of data without any escape undone."""
    return offset


def _compose_offset_maps(outer: OffsetMap, inner: OffsetMap) -> OffsetMap:
    """The map that applies `inner`, then `outer`."""
    return lambda offset: outer(inner(offset))


# --- the secrets of this process -----------------------------------------------------------------------------------

_redactor = Redactor(())


def register_secrets(*secrets: str | None) -> None:
    """Remove these secrets from all text from now on; secrets that are None, empty or too short are ignored."""
    global _redactor
    new_secrets = {
        variant
        for secret in secrets
        if secret
        for variant in (secret, secret.strip())
        if len(variant) >= MIN_SECRET_CHARS
    }
    if not new_secrets <= _redactor.secrets:
        _redactor = Redactor(_redactor.secrets | new_secrets)


def known_secrets() -> tuple[str, ...]:
    """All registered secrets, sorted, to register them in another process of this run."""
    return tuple(sorted(_redactor.secrets))


def redact(text: str, *, complete: bool = True) -> str:
    """Replace every registered secret in a text; see `Redactor.redact_text`."""
    return _redactor.redact_text(text, complete=complete)


def redact_bytes(data: bytes, *, complete: bool = True) -> bytes:
    """As `redact`, for bytes."""
    return _redactor.redact_bytes(data, complete=complete)


class RedactingFilter(logging.Filter):
    """Removes secrets from the log records of a library."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the message and the traceback; every record passes."""
        record.msg, record.args = redact(record.getMessage()), None
        if record.exc_info:
            record.exc_text = redact(record.exc_text or logging.Formatter().formatException(record.exc_info))
        return True
