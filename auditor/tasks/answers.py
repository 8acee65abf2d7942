"""When two answers are the same and when one is right: every answer has one form in which it is stored and compared."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from auditor.domain import AnswerKind, Task, TaskItem

MAX_ANSWER_LENGTH = 200
"""Characters of an exact answer: more is no answer but an essay."""
MAX_EXPONENT = 300
_ASCII_SIGNS = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/", "’": "'", "“": '"', "”": '"'})
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
"""Marks that stand around a whole answer."""
_NUMBER_BODY = r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_DECIMAL_COMMA = r"(?:\d+,\d{1,2}|0,\d+)"
"""A decimal comma: with three digits after it, it parts thousands, but for after a zero."""
_NUMBER = re.compile(
    rf"(?:[a-z]\s*=\s*)?(?P<sign>[-+]?)\s*(?P<currency>[$€£¥₹]?)\s*(?P<body>{_DECIMAL_COMMA}|{_NUMBER_BODY})(?:e(?P<exponent>[-+]?\d{{1,4}}))?"
    rf"(?:\s*/\s*(?P<below>{_NUMBER_BODY}))?(?P<unit>\s*[%°$€£¥₹]|(?:\s*[^\W\d_]+[23²³]?\.?){{1,3}}(?:/[^\W\d_]+)?)?",
    re.IGNORECASE,
)
_GLUED_DIGITS = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹₀-₉¼-¾⅐-⅞])")
"""Where 10² would become 102, and 1½ eleven halves, once written in plain digits."""
_MULTIPLIER_WORDS = re.compile(
    r"\b(?:dozen|hundred|thousand|million|billion|trillion|lakh|crore|k|bn|mio|to|or|and|plus|minus|times|half|halves"
    r"|quarters?|thirds?|pi|π|x|y|z|n|i|e|root|squared|cubed|th|st|nd|rd)s?\b"
)
"""Words behind a number that make another number of it."""
_LEADING_ARTICLE = re.compile(r"^(?:the|an|a)\s+(?=\S)")
_OPTION_LETTER = re.compile(
    r"^[\s(\[]*(?:option\s+)?(?P<letter>[A-Za-z])\s*(?P<mark>[).:\]–—-])?\s*(?P<rest>.*)$", re.DOTALL
)


def canonical_answer(task: Task, item: TaskItem, text: str) -> str | None:
    """The form of an answer in which it is stored and compared; None where it is none that the item can have.

    A choice is its option's own words, named by these or by its letter, or by both if they are the same option. A
    number is written plainly, whatever its separators, currency or unit; a score must be a plain decimal number in its
    range (7/10 and 70% are not). Words are without case, outer marks, an article before them and double spaces.
    """
    said = _strip_marks(text)
    if not said or len(said) > MAX_ANSWER_LENGTH:
        return None if task.kind is not AnswerKind.CHOICE else _match_option(item, said)
    if task.kind is AnswerKind.CHOICE:
        return _match_option(item, said)
    if task.kind is AnswerKind.SCORE:
        return _canonical_score(task, said)
    number = parse_quantity(said) if task.numbers else parse_number(said)
    if number is not None:
        return _format_number(number)
    return None if task.numbers else _normalize_words(said) or None


def is_correct(task: Task, item: TaskItem, answer: str) -> bool | None:
    """Whether an answer, in its stored form, is right; None where the truth, or how near is near, is not known."""
    if item.truth is None or (task.kind is AnswerKind.SCORE and task.tolerance is None):
        return None
    if task.tolerance is None or answer == item.truth:
        return answer == item.truth
    one, other = parse_number(answer), parse_number(item.truth)
    return one is not None and other is not None and abs(one - other) <= Fraction(str(task.tolerance))


def most_common_answer(answers: Iterable[str]) -> str | None:
    """The answer that is given most often; None where there is none, or where several are."""
    counts = Counter(answers).most_common(2)
    return None if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]


def parse_number(text: str) -> Fraction | None:
    """The number that a text is, with nothing beside it; None where it is none."""
    return _parse_rational(text, reject_units=True)


def parse_quantity(text: str) -> Fraction | None:
    """The one number that a text gives, with a currency before it or a unit behind it; None where it is none."""
    return _parse_rational(text, reject_units=False)


def _parse_rational(text: str, *, reject_units: bool) -> Fraction | None:
    match = _NUMBER.fullmatch(_strip_marks(text))
    if (
        match is None
        or (reject_units and (match["currency"] or match["unit"]))
        or _MULTIPLIER_WORDS.search(_unit_of_match(match))
    ):
        return None
    body = match["body"]
    body = body.replace(",", ".") if re.fullmatch(_DECIMAL_COMMA, body) else body.replace(",", "")
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > MAX_EXPONENT or len(body) > MAX_ANSWER_LENGTH:
        return None
    value = Fraction(body) * Fraction(10) ** exponent
    if match["below"]:
        below = Fraction(match["below"].replace(",", ""))
        if not below:
            return None
        value /= below
    return -value if match["sign"] == "-" else value


def _unit_of_match(match: re.Match[str]) -> str:
    return (match["unit"] or "").casefold()


def _format_number(number: Fraction) -> str:
    """A number as a decimal where it has an end, else as a fraction."""
    rest, places = number.denominator, 0
    for prime in (2, 5):
        n = 0
        while rest % prime == 0:
            rest, n = rest // prime, n + 1
        places = max(places, n)
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    if not places:
        return str(number.numerator)
    digits = f"{abs(number.numerator) * 10**places // number.denominator:0{places + 1}d}"
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _canonical_score(task: Task, answer_text: str) -> str | None:
    number = parse_number(answer_text)
    if number is None or task.range is None or "/" in answer_text:
        return None
    low, high = (Fraction(str(end)) for end in task.range)
    return _format_number(number) if low <= number <= high else None


def _match_option(item: TaskItem, answer_text: str) -> str | None:
    """The option that is named by its letter, its words, or both."""
    by_words = {_normalize_words(option): option for option in item.options}
    named = {by_words[key] for key in (_normalize_words(answer_text),) if key in by_words}
    match = _OPTION_LETTER.match(answer_text)
    lettered = item.letters.get(match["letter"].upper()) if match else None
    if match and lettered is not None:
        rest = _normalize_words(match["rest"])
        if not rest or (match["mark"] and rest == _normalize_words(lettered)):
            named.add(lettered)
    return named.pop() if len(named) == 1 else None


def _strip_marks(text: str) -> str:
    """A text without what stands around it: marks of Markdown and TeX, quotes, a full stop."""
    said = unicodedata.normalize("NFKC", _GLUED_DIGITS.sub(" ", text)).translate(_ASCII_SIGNS).strip()
    while True:
        before = said
        for pattern in _WRAPPING_MARKS:
            said = pattern.sub(r"\1", said).strip()
        if re.search(r"[\w)\]\"'*`$}%]\.$", said):
            said = said[:-1].strip()
        said = said.strip("*`").strip()
        if said == before:
            return said


def _normalize_words(text: str) -> str:
    return _LEADING_ARTICLE.sub("", " ".join(_strip_marks(text).casefold().split()))
