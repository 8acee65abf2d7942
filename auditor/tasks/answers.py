"""Canonical form of answers to task items, in which they are stored, compared and checked against the truth."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from auditor.domain import AnswerKind, Task, TaskItem

MAX_ANSWER_LENGTH = 200
"""Maximum length of an exact answer, in characters."""
MAX_EXPONENT = 300
_ASCII_SIGNS = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/", "’": "'", "“": '"', "”": '"'})
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")
"""Characters that are not seen, and are copied with a text from pages and documents; joiners, which have a meaning in
some scripts, are not among them."""
_WRAPPING_MARKS = (
    re.compile(r"^\$?\s*\\boxed\s*\{(.*)\}\s*\$?$"),
    re.compile(r"^\\\((.*)\\\)$"),
    re.compile(r"^\$([^$]+)\$$"),
    re.compile(r"^\\text\s*\{(.*)\}$"),
    re.compile(r"^(?:\*\*|__|`)(.+?)(?:\*\*|__|`)$"),
    re.compile(r"^\"(.*)\"$"),
    re.compile(r"^'(.*)'$"),
    re.compile(r"^\[(.*)\]$"),
)
"""Quotes and Markdown or TeX marks around an entire answer; group 1 is the answer."""
_NUMBER_BODY = r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_DECIMAL_COMMA = r"(?:\d+,\d{1,2}|0,\d+)"
"""A number with a decimal comma. A comma before three digits separates thousands, except after a leading zero."""
_NUMBER = re.compile(
    rf"(?:[a-z]\s*=\s*)?(?P<sign>[-+]?)\s*(?P<currency>[$€£¥₹]?)\s*(?P<body>{_DECIMAL_COMMA}|{_NUMBER_BODY})(?:e(?P<exponent>[-+]?\d{{1,4}}))?"
    rf"(?:\s*/\s*(?P<below>{_NUMBER_BODY}))?(?P<unit>\s*[%°$€£¥₹]|(?:\s*[^\W\d_]+[23²³]?\.?){{1,3}}(?:/[^\W\d_]+)?)?",
    re.IGNORECASE,
)
"""A single number: `sign`, `currency`, `body` (the digits), `exponent`, `below` (the denominator) and `unit`."""

_GLUED_DIGITS = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹₀-₉¼-¾⅐-⅞])")
"""Boundary between a digit and a superscript, subscript or fraction. NFKC would turn 10² into 102, and 1½ into 11/2."""
_MULTIPLIER_WORDS = re.compile(
    r"\b(?:dozen|hundred|thousand|million|billion|trillion|lakh|crore|k|bn|mio|to|or|and|plus|minus|times|half|halves"
    r"|quarters?|thirds?|pi|π|x|y|z|n|i|e|root|squared|cubed|th|st|nd|rd)s?\b"
)
"""Words after a number that change its value, such as `million`, `half` or `or`."""
_LEADING_ARTICLE = re.compile(r"^(?:the|an|a)\s+(?=\S)")
_OPTION_LETTER = re.compile(
    r"^[\s(\[]*(?:option\s+)?(?P<letter>[A-Za-z])\s*(?P<mark>[).:\]–—-])?\s*(?P<rest>.*)$", re.DOTALL
)


def canonical_answer(task: Task, item: TaskItem, text: str) -> str | None:
    """Convert an answer to its canonical form; None if the answer is not valid for the item.

    A choice becomes the text of its option, if the answer names it by its text, its letter, or both consistently. A
    number becomes a plain decimal or fraction, without separators, currency or unit; a score must be a plain decimal
    number in the task's range (7/10 and 70% are not). Words lose case, outer marks, a leading article and extra spaces.
    """
    answer_text = _strip_marks(text)
    if not answer_text or len(answer_text) > MAX_ANSWER_LENGTH:
        return None if task.kind is not AnswerKind.CHOICE else _match_option(item, answer_text)
    if task.kind is AnswerKind.CHOICE:
        return _match_option(item, answer_text)
    if task.kind is AnswerKind.SCORE:
        return _canonical_score(task, answer_text)
    number = parse_quantity(answer_text) if task.numbers else parse_number(answer_text)
    if number is not None:
        return _format_number(number)
    # A word with a character that its server damaged is neither right nor wrong.
    return None if task.numbers or "\ufffd" in answer_text else _normalize_words(answer_text) or None


def is_correct(task: Task, item: TaskItem, answer: str) -> bool | None:
    """Whether an answer in canonical form is right; None without a known truth, or for scores without a tolerance."""
    if item.truth is None or (task.kind is AnswerKind.SCORE and task.tolerance is None):
        return None
    if task.tolerance is None or answer == item.truth:
        return answer == item.truth
    answer_number, truth_number = parse_number(answer), parse_number(item.truth)
    return (
        answer_number is not None
        and truth_number is not None
        and abs(answer_number - truth_number) <= Fraction(str(task.tolerance))
    )


def most_common_answer(answers: Iterable[str]) -> str | None:
    """The most frequent answer; None if there is none, or in a tie."""
    counts = Counter(answers).most_common(2)  # pairs of an answer and its count
    return None if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]


def parse_number(text: str) -> Fraction | None:
    """Parse a text that is a single number without currency or unit; None if it is not."""
    return _parse_rational(text, reject_units=True)


def parse_quantity(text: str) -> Fraction | None:
    """Parse a text that is a single number, optionally with a currency or a unit; None if it is not."""
    return _parse_rational(text, reject_units=False)


def _parse_rational(text: str, *, reject_units: bool) -> Fraction | None:
    """Parse a number, with exponent or fraction, as an exact rational; None if it is not a single number."""
    match = _NUMBER.fullmatch(_strip_marks(text))
    if (
        match is None
        or (reject_units and (match["currency"] or match["unit"]))
        or _MULTIPLIER_WORDS.search((match["unit"] or "").casefold())
    ):
        return None
    body = match["body"]
    body = body.replace(",", ".") if re.fullmatch(_DECIMAL_COMMA, body) else body.replace(",", "")
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > MAX_EXPONENT or len(body) > MAX_ANSWER_LENGTH:
        return None
    number = Fraction(body) * Fraction(10) ** exponent
    if match["below"]:
        denominator = Fraction(match["below"].replace(",", ""))
        if not denominator:
            return None
        number /= denominator
    return -number if match["sign"] == "-" else number


def _format_number(number: Fraction) -> str:
    """Format a number as a finite decimal if possible, otherwise as a fraction such as `1/3`."""
    cofactor, places = number.denominator, 0
    # A decimal is finite if the denominator has no prime factor but 2 and 5; `places` are its decimal places.
    for prime in (2, 5):
        exponent = 0
        while cofactor % prime == 0:
            cofactor, exponent = cofactor // prime, exponent + 1
        places = max(places, exponent)
    if cofactor != 1:
        return f"{number.numerator}/{number.denominator}"
    if not places:
        return str(number.numerator)
    digits = f"{abs(number.numerator) * 10**places // number.denominator:0{places + 1}d}"
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _canonical_score(task: Task, answer_text: str) -> str | None:
    """Canonical form of a score; None if it is not a plain decimal number in the task's range."""
    number = parse_number(answer_text)
    if number is None or task.range is None or "/" in answer_text:
        return None
    low, high = (Fraction(str(bound)) for bound in task.range)
    return _format_number(number) if low <= number <= high else None


def percentage_as_share(task: Task, text: str) -> str:
    """A percentage in a file, such as 50%, as the number 0.5 where scores are from 0 to 1; other texts unchanged."""
    if task.range != (0, 1) or not (stripped := _strip_marks(text)).endswith("%"):
        return text
    number = parse_number(stripped.removesuffix("%"))
    return text if number is None else _format_number(number / 100)


def _match_option(item: TaskItem, answer_text: str) -> str | None:
    """The option that an answer names by its letter, its text, or both; None if none or several are named."""
    # An answer may be the text of an option, or a letter, followed by a mark and the text of the option if at all.
    option_by_words = {_normalize_words(option): option for option in item.options}
    named_options = {option_by_words[words] for words in (_normalize_words(answer_text),) if words in option_by_words}
    match = _OPTION_LETTER.match(answer_text)
    lettered_option = item.letters.get(match["letter"].upper()) if match else None
    if match and lettered_option is not None:
        words_after_letter = _normalize_words(match["rest"])
        if not words_after_letter or (match["mark"] and words_after_letter == _normalize_words(lettered_option)):
            named_options.add(lettered_option)
    return named_options.pop() if len(named_options) == 1 else None


def _strip_marks(text: str) -> str:
    """Remove Markdown and TeX marks, quotes and a final full stop around a text."""
    visible = _INVISIBLE.sub("", text)
    stripped = unicodedata.normalize("NFKC", _GLUED_DIGITS.sub(" ", visible)).translate(_ASCII_SIGNS).strip()
    while True:
        previous = stripped
        for pattern in _WRAPPING_MARKS:
            stripped = pattern.sub(r"\1", stripped).strip()
        if re.search(r"[\w)\]\"'*`$}%]\.$", stripped):
            stripped = stripped[:-1].strip()
        stripped = stripped.strip("*`").strip()
        if stripped == previous:
            return stripped


def _normalize_words(text: str) -> str:
    """Lower-case an answer, and remove outer marks, a leading article and extra spaces."""
    return _LEADING_ARTICLE.sub("", " ".join(_strip_marks(text).casefold().split()))
