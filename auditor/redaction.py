"""Removing secrets from whatever is stored, shown or sent on.

A secret is known from the moment that this process reads it: `remember` is called where keys, tokens and passwords are
resolved. A provider can echo a secret in any field and in several encodings, so all text from outside passes `redact`.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MIN_SECRET_CHARS = 8
"""Shorter secrets are not searched for: they occur in ordinary words."""
REPLACEMENT = "[key removed]"
MAX_NESTED_ESCAPES = 4
"""Levels of escaping that are undone: an escape in JSON within a JSON string, and so on."""
MAX_SEQUENTIAL_SEARCH_SIZE = 20_000
"""Bytes of data times forms of secrets up to which one search after another is faster than the table."""
GRAM_BYTES = 4
HASH_BITS = 20

OffsetMap = Callable[[int], int]
"""Maps an offset in unescaped data to the offset in the data as it came."""


class Redactor:
    """Finds secrets plain, JSON-escaped, percent-encoded, in hexadecimal, base64, UTF-16 and UTF-32, in linear time.

    A search looks up each aligned word of four bytes in a table of the words that occur in an encoded secret, and
    compares the secrets only where one is found. Its time therefore hardly depends on the number of secrets.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        """Prepare the search.

        Args:
            secrets: those shorter than `MIN_SECRET_CHARS` are ignored.
        """
        self.secrets = frozenset(s for s in secrets if len(s) >= MIN_SECRET_CHARS)
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
        """The text without any secret.

        Args:
            complete: False if the text was cut off: an end that may be the beginning of a secret is removed as well.
        """
        if not self._needles:
            return text
        data = text.encode("utf-8", "surrogatepass")
        result = self.redact_bytes(data, complete=complete)
        return text if result is data else result.decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes, *, complete: bool = True) -> bytes:
        """As `text`, for bytes."""
        if not self._needles:
            return data
        spans, end = [], len(data)
        for level, origin in self._unescape_levels(data):
            spans += [(origin(start), origin(stop)) for start, stop in self._find_secrets(level)]
            if not complete:
                end = min(end, origin(self._safe_end(level)))
        return _replace_spans(data, spans, end) if spans or end < len(data) else data

    def _hash_table(self) -> Any:
        import numpy as np  # on first use: most commands of the program resolve no secret

        table = np.zeros(1 << HASH_BITS, dtype=np.bool_)
        table[_hash_words(np.fromiter(self._by_gram, dtype="<u4"))] = True
        return table

    def _find_secrets(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where encoded secrets stand. Every needle has at least seven bytes, so it contains an aligned word."""
        if len(data) * len(self._needles) <= MAX_SEQUENTIAL_SEARCH_SIZE:
            yield from (
                (m.start(), m.end()) for n in self._needles if n in data for m in re.finditer(re.escape(n), data)
            )
            return
        import numpy as np

        words = np.frombuffer(data, dtype="<u4", count=len(data) // GRAM_BYTES)
        for index in np.flatnonzero(self._gram_table[_hash_words(words)]).tolist():
            for needle, offset in self._by_gram.get(int(words[index]), ()):
                start = index * GRAM_BYTES - offset
                if start >= 0 and data.startswith(needle, start):
                    yield start, start + len(needle)

    def _unescape_levels(self, data: bytes) -> Iterator[tuple[bytes, OffsetMap]]:
        """The data as it came, and with one level of escapes after another undone."""
        origin: OffsetMap = _same_offset
        yield data, origin
        for _ in range(MAX_NESTED_ESCAPES):
            if not self._escapes.search(data):
                return
            data, inner = _unescape_once(data)
            origin = _compose_offset_maps(origin, inner)
            yield data, origin

    def _safe_end(self, data: bytes) -> int:
        """Where the data must end so that it does not end with the beginning of an encoded secret."""
        end = len(data) - len(match.group()) if (match := PARTIAL_ESCAPE.search(data[-8:])) else len(data)
        longest = min(len(self._needles[-1]), end)
        tail = data[end - longest : end]
        return min([end, *(end - _overlap_length(tail, needle) for needle in self._needles)])


def encoded_forms(secret: str) -> Iterator[bytes]:
    """The secret as it may stand in a text, apart from escapes of single characters.

    Base64 depends on how many bytes come before, modulo three; characters that also encode a neighbour are left out.
    """
    data = secret.encode("utf-8", "surrogatepass")
    yield data
    for wide in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):  # a body is stored as it came
        yield secret.encode(wide, "surrogatepass")
    if any(ord(char) > 0xFFFF for char in secret):  # JSON escapes such a character as two surrogates
        pairs = secret.encode("utf-16-be")
        units = (int.from_bytes(pairs[i : i + 2]) for i in range(0, len(pairs), 2))
        yield "".join(map(chr, units)).encode("utf-8", "surrogatepass")
    yield data.hex().encode()
    yield data.hex().upper().encode()
    for before in range(3):
        code = base64.b64encode(b"\0" * before + data)
        inner = code[(8 * before + 5) // 6 : 8 * (before + len(data)) // 6]
        yield inner
        yield inner.replace(b"+", b"-").replace(b"/", b"_")


BACKSLASH = ord("\\")
HEX_VALUES = [int(chr(i), 16) if chr(i) in "0123456789abcdefABCDEF" else 255 for i in range(256)]
"""By byte; 255 for what is no hexadecimal digit."""
PARTIAL_ESCAPE = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?)\Z")
"""An escape that a cut left incomplete."""


def _escape_pattern(secrets: Iterable[str]) -> bytes:
    """Escapes of characters that occur in secrets or in base64; other escapes need not be undone."""
    chars = set("".join(secrets))
    if all(char.isascii() for char in chars):
        pattern = rb"\\u00[2-7][0-9a-fA-F]|\\/|\\\\|%[2-7][0-9a-fA-F]"
    else:
        pattern = rb"\\u[0-9a-fA-F]{4}|\\/|\\\\|%[0-9a-fA-F]{2}"
    return pattern + (rb'|\\"' if '"' in chars else b"")


def _unescape_once(data: bytes) -> tuple[bytes, OffsetMap]:
    """The data with one level of JSON and percent escapes undone. Without a loop, since all of it may be escapes."""
    import numpy as np

    size = len(data)
    chars = np.frombuffer(data + b"\0" * 5, dtype=np.uint8)
    following, digits = chars[1 : size + 1], np.array(HEX_VALUES, dtype=np.uint8)[chars]
    digit = [digits[i : i + size] for i in range(6)]
    chars = chars[:size]
    is_backslash, position = chars == BACKSLASH, np.arange(size, dtype=np.int32)
    in_run = position - np.maximum.accumulate(np.where(is_backslash, -1, position)) - 1
    escapes_next = is_backslash & (in_run % 2 == 0)
    percent = np.flatnonzero((chars == ord("%")) & (digit[1] < 16) & (digit[2] < 16))
    simple = np.flatnonzero(escapes_next & np.isin(following, list(b'/"\\')))
    is_unicode = escapes_next & (following == ord("u"))
    for i in range(2, 6):
        is_unicode &= digit[i] < 16
    wide = np.flatnonzero(is_unicode)

    out, keep = chars.copy(), np.ones(size, dtype=np.bool_)
    out[simple], keep[simple + 1] = following[simple], False
    out[percent] = digit[1][percent] * 16 + digit[2][percent]
    for i in (1, 2):
        keep[percent + i] = False
    for i in range(1, 6):
        keep[wide + i] = False
    _write_utf8(wide, [digit[i][wide].astype(np.int32) for i in range(2, 6)], out, keep)
    offsets = np.append(np.flatnonzero(keep), size)
    return out[keep].tobytes(), lambda offset: int(offsets[offset])


def _write_utf8(starts: Any, digits: list[Any], out: Any, keep: Any) -> None:
    """Write the UTF-8 of four hexadecimal digits over the beginning of each escape."""
    code = (digits[0] << 12) | (digits[1] << 8) | (digits[2] << 4) | digits[3]
    out[starts] = code & 0x7F
    for low, lead, shifts in ((0x80, 0xC0, (6, 0)), (0x800, 0xE0, (12, 6, 0))):
        longer = code >= low
        at, value = starts[longer], code[longer]
        for i, shift in enumerate(shifts):
            out[at + i] = ((0x80 | (value >> shift) & 0x3F) if i else (lead | value >> shift)) & 0xFF
            keep[at + i] = True


def _hash_words(words: Any) -> Any:
    """Multiplicative hashes of 32-bit words."""
    return (words * words.dtype.type(0x9E3779B1)) >> (32 - HASH_BITS)


def _overlap_length(tail: bytes, needle: bytes) -> int:
    """Length of the longest end of `tail` with which `needle` begins."""
    return next((n for n in range(min(len(tail), len(needle)), 0, -1) if tail.endswith(needle[:n])), 0)


def _replace_spans(data: bytes, spans: Iterable[tuple[int, int]], end: int) -> bytes:
    parts, position = [], 0
    for start, stop in sorted(spans):
        if stop <= position or start >= end:
            continue
        parts += [data[position : max(start, position)], REPLACEMENT.encode() if start >= position else b""]
        position = stop
    return b"".join([*parts, data[position : max(end, position)]])


def _same_offset(offset: int) -> int:
    return offset


def _compose_offset_maps(outer: OffsetMap, inner: OffsetMap) -> OffsetMap:
    return lambda offset: outer(inner(offset))


# --- the secrets of this process -----------------------------------------------------------------------------------

_redactor = Redactor(())


def register_secrets(*secrets: str | None) -> None:
    """Remove these secrets from now on; what is already known, missing or too short changes nothing."""
    global _redactor
    new = {s for secret in secrets if secret for s in (secret, secret.strip()) if len(s) >= MIN_SECRET_CHARS}
    if not new <= _redactor.secrets:
        _redactor = Redactor(_redactor.secrets | new)


def known_secrets() -> tuple[str, ...]:
    """All secrets that are removed, for another process of this run."""
    return tuple(sorted(_redactor.secrets))


def redact(text: str, *, complete: bool = True) -> str:
    """The text without any secret that this process has read; see `Redactor.text`."""
    return _redactor.redact_text(text, complete=complete)


def redact_bytes(data: bytes, *, complete: bool = True) -> bytes:
    """As `redact`, for bytes."""
    return _redactor.redact_bytes(data, complete=complete)


class RedactingFilter(logging.Filter):
    """Removes secrets from what a library logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the message and the traceback; every record passes."""
        record.msg, record.args = redact(record.getMessage()), None
        if record.exc_info:
            record.exc_text = redact(record.exc_text or logging.Formatter().formatException(record.exc_info))
        return True
