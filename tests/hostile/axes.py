"""Axes of the hostile test cases, and which of their values can be combined.

A case has one value on each axis. `-` means that the axis does not apply, for example when no reply arrives. Each
block lists values that can be combined freely; a pair of values is sensible if a block has both and `EXCLUDED` does
not. Values that would have no effect together are in no common block, such as a usage in a body that is not JSON.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

NONE = "-"
AXES = ("protocol", "status", "headers", "body", "usage", "finish", "encoding", "timing")

CHATS = ("openai", "anthropic", "gemini", "bedrock", "mistral", "groq", "openrouter")
ECHO = "echo"
"""A completions endpoint that sends the prompt's log-probabilities."""
BATCHES = ("openai-batch", "anthropic-batch")
SINGLE = (*CHATS, ECHO)
PROTOCOLS = (*SINGLE, *BATCHES)

ERRORS = ("400", "401", "402", "403", "404", "408", "429", "500", "502", "503", "529")
MAY_RECOVER = ("429", "503", "529")
REDIRECTS = ("301", "307")
WAITS = ("wait-0", "wait-day", "wait-past-date", "wait-far-date", "wait-negative", "wait-words", "wait-ms")
TYPES = ("plain", "wrong-type")
LYING = ("gzip", "longer", "shorter")
"""Compression that was not requested; a Content-Length above or below the length of the body."""

KEYS = ("key-plain", "key-bearer", "key-base64", "key-hex", "key-percent", "key-json")
"""Encodings in which a server echoes the API key of the request."""
TEXTS = ("nul", "escapes", "pem")
ANSWERS = ("normal", "prose", "tool", "parts", "refusal", "blank", "null-message", *KEYS, "surrogate", *TEXTS)
WITHOUT_TEXT = ("no-choices", "null-choice")
"""Bodies without text, which may still have a usage."""
UNREADABLE = (
    "html", "empty", "null", "list", "cut-json", "foreign", "error-in-200", "9mb", "deep", "digits", "sse", "ndjson",
)  # fmt: skip
ERROR_BODIES = (
    "error", "error-html", "error-empty", "error-null", "error-list", "error-cut-json", "error-prose", "error-deep",
    "error-digits", *(f"error-{kind}" for kind in (*KEYS, *TEXTS)),
)  # fmt: skip
BATCH_ERROR_BODIES = ("error", *(f"error-{kind}" for kind in (*KEYS, *TEXTS)))
FEW_ERROR_BODIES = ("error", "error-html", "error-empty", "error-prose", "error-key-plain")

USAGE = (
    "right", "absent", "zero", "negative", "null", "strings", "floats", "hundred-million", "1e30", "reasoning",
    "cached",
)  # fmt: skip
FINISHES = ("complete", "COMPLETE", "cut", "CUT", "refused", "REFUSED", "failed", "unknown", "null", "missing")
"""Finish reasons; in capitals, the provider's word with its letter case swapped."""
READABLE = ("utf-8", "bom", "escaped")
NOT_UTF8 = ("utf-16", "latin-1", "latin-1-undeclared")
ARRIVES = ("now", "slow", "drip")
SILENT = ("closed", "reset", "hang")

Block = Mapping[str, tuple[str, ...]]
BLOCKS: tuple[Block, ...] = (
    {"protocol": SINGLE, "timing": SILENT},
    {"protocol": SINGLE, "status": REDIRECTS, "timing": ("now", "slow")},
    {"protocol": CHATS, "status": ("200",), "headers": TYPES, "body": ANSWERS, "usage": USAGE, "finish": FINISHES,
     "encoding": READABLE, "timing": ARRIVES},
    {"protocol": (ECHO,), "status": ("200",), "headers": TYPES, "body": ("normal", "prose", *KEYS, "surrogate"),
     "usage": USAGE, "encoding": READABLE, "timing": ARRIVES},
    {"protocol": SINGLE, "status": ("200",), "headers": ("plain",), "body": ("normal",), "encoding": NOT_UTF8,
     "timing": ("now",)},
    {"protocol": SINGLE, "status": ("200",), "headers": TYPES, "body": WITHOUT_TEXT, "usage": USAGE, "timing": ARRIVES},
    {"protocol": SINGLE, "status": ("200",), "headers": TYPES, "body": UNREADABLE, "timing": ARRIVES},
    {"protocol": SINGLE, "status": ("200",), "headers": LYING, "body": ("normal",), "timing": ("now",)},
    {"protocol": SINGLE, "status": ("500",), "headers": LYING, "body": ("error",), "timing": ("now",)},
    {"protocol": SINGLE, "status": ("200",), "headers": ("plain",), "body": ("normal",), "timing": ("broken",)},
    {"protocol": SINGLE, "status": ("500",), "headers": ("plain",), "body": ("error",), "timing": ("broken",)},
    {"protocol": SINGLE, "status": ERRORS, "headers": TYPES, "body": FEW_ERROR_BODIES, "timing": ARRIVES},
    {"protocol": SINGLE, "status": ("400", "429", "500"), "headers": TYPES, "body": ERROR_BODIES, "timing": ARRIVES},
    {"protocol": SINGLE, "status": ("500",), "headers": TYPES, "body": ("error-9mb",), "timing": ("now",)},
    {"protocol": SINGLE, "status": ("400", "500"), "headers": ("plain",), "body": ("error",),
     "encoding": ("bom", "escaped", *NOT_UTF8), "timing": ("now",)},
    {"protocol": SINGLE, "status": MAY_RECOVER, "headers": WAITS, "body": ("error",), "timing": ARRIVES},
    {"protocol": BATCHES, "status": ("200",), "body": ANSWERS, "usage": USAGE, "finish": FINISHES,
     "encoding": ("utf-8", "escaped"), "timing": ARRIVES},
    {"protocol": BATCHES, "status": ("200",), "body": WITHOUT_TEXT, "usage": USAGE, "timing": ARRIVES},
    {"protocol": BATCHES, "status": ("200",), "body": ("null", "list", "foreign", "error-in-200"), "timing": ARRIVES},
    {"protocol": BATCHES, "status": ("400", "429", "500"), "body": BATCH_ERROR_BODIES, "timing": ARRIVES},
)  # fmt: skip

NEVER: dict[str, tuple[str, ...]] = {
    "refusal": ("anthropic", "gemini", "bedrock", "mistral", "groq", "anthropic-batch"), "surrogate": ("bedrock",),
    "reasoning": ("anthropic", "bedrock", "mistral", ECHO, "anthropic-batch"), "cached": ("mistral", ECHO),
    "refused": ("mistral", "groq"), "REFUSED": ("mistral", "groq"), "failed": ("openai", "openai-batch", "groq"),
}  # fmt: skip
"""Protocols that lack a feature, by the value that needs it: a refusal field, a token count, a finish reason ..."""
EXCLUDED = frozenset(frozenset((value, protocol)) for value, protocols in NEVER.items() for protocol in protocols)

Pair = tuple[tuple[str, str], tuple[str, str]]


def is_sensible(choice: Mapping[str, str]) -> bool:
    """Whether one block has all values of a case, and no two of them exclude each other."""
    if any(frozenset(pair) in EXCLUDED for pair in itertools.combinations(choice.values(), 2)):
        return False
    return any(all(choice[axis] in block.get(axis, (NONE,)) for axis in AXES) for block in BLOCKS)


def sensible_pairs() -> set[Pair]:
    """Every sensible pair of values of two axes."""
    pairs = itertools.chain.from_iterable(_pairs_of_block(block) for block in BLOCKS)
    return {(one, other) for one, other in pairs if frozenset((one[1], other[1])) not in EXCLUDED}


def _pairs_of_block(block: Block) -> Iterator[Pair]:
    """All pairs of values on two different axes of a block."""
    for one, other in itertools.combinations([axis for axis in AXES if axis in block], 2):
        yield from (((one, a), (other, b)) for a in block[one] for b in block[other])


def pairs_of(choice: Mapping[str, str]) -> set[Pair]:
    chosen = [(axis, choice[axis]) for axis in AXES if choice[axis] != NONE]
    return set(itertools.combinations(chosen, 2))
