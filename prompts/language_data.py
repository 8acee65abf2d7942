"""What the program knows of prompt languages: words for blinding, refusals, addresses of a judge, sentence pairs."""

from __future__ import annotations

import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from auditor.domain.terms import ENGLISH, LANGUAGES
from auditor.prompts.loader import PLACEHOLDER

BLINDING_FILE = "blinding.toml"


class BlindingTerms(BaseModel):
    """Contents of one language's `blinding.toml`.

    Attributes:
        strip: pattern of the ending that is removed from a term before matching.
        before, after: patterns of prefixes and endings that grammar may add to the stem.
        introduces: pattern of the words that introduce a name ("my name is "), including the space after them.
        short: ordinary words of two and three letters, folded to lower case without accents.
        myself: patterns of a model's descriptions of itself.
        countries: terms by alpha-3 code. A term that ends in `*` matches any ending.
        topics: terms by the topic's English label, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strip: str
    before: str
    after: str
    introduces: str
    short: frozenset[str]
    myself: tuple[re.Pattern[str], ...]
    countries: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, tuple[str, ...]] = {}

    @field_validator("countries", "topics", mode="before")
    @classmethod
    def _split_terms(cls, terms_by_keys: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Split keys and terms at `|`: each of the keys in one entry gets all its terms."""
        return {
            key: tuple(joined_terms.split("|"))
            for joined_keys, joined_terms in terms_by_keys.items()
            for key in joined_keys.split("|")
        }

    @field_validator("short", mode="before")
    @classmethod
    def _split_words(cls, joined_words: str) -> list[str]:
        """Split a text into its words."""
        return joined_words.split()

    @field_validator("myself", mode="before")
    @classmethod
    def _compile_patterns(cls, patterns: list[str]) -> tuple[re.Pattern[str], ...]:
        """Compile patterns that match in any case."""
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


@functools.cache
def load_blinding_terms(language: str) -> BlindingTerms:
    """Load the file of one of the `LANGUAGES`."""
    text = (resources.files("auditor.prompts") / language / BLINDING_FILE).read_text(encoding="utf-8")
    return BlindingTerms.model_validate(tomllib.loads(text))


REFUSALS_FILE = "refusals.toml"


class RefusalPatterns(BaseModel):
    """One language's patterns of a refusal; matched in any case, against text with straight apostrophes.

    Attributes:
        refuses: refusals at any place of a text.
        begins: refusals at the beginning of a text.
        opens: an apology, or "As an AI model", before a refusal.
        declines: what refuses only after such an opening.
        answers: words after a refusal that show that the text answers nevertheless.
        about_request: words by which a refusal is about the request, or about the one who refuses being a program.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    refuses: tuple[re.Pattern[str], ...]
    begins: tuple[re.Pattern[str], ...]
    opens: tuple[re.Pattern[str], ...]
    declines: tuple[re.Pattern[str], ...]
    answers: tuple[re.Pattern[str], ...]
    about_request: tuple[re.Pattern[str], ...] = ()

    @field_validator("*", mode="before")
    @classmethod
    def _compile_patterns(cls, patterns: list[str]) -> tuple[re.Pattern[str], ...]:
        """Compile patterns that match in any case."""
        return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


@functools.cache
def load_refusal_patterns(language: str | None) -> RefusalPatterns:
    """Load the patterns of one of the `LANGUAGES`; those of languages without prompts for None."""
    folder = resources.files("auditor.prompts")
    path = folder / REFUSALS_FILE if language is None else folder / language / REFUSALS_FILE
    return RefusalPatterns.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


JUDGE_PHRASES_FILE = "phrases_to_judges.toml"
_ANCHORS = ("override", "reviewer", "verdict")
_KINDS = ("override", "text", "reviewer", "verdict", "reader", "order")
MIN_KINDS = 3
"""Kinds of words in one sentence from which on it addresses the judge."""
_UNSPACED_LANGUAGES = frozenset({"ja", "zh"})
_VERDICT_IN_CAPITALS = re.compile(r"(?<![A-Za-z])(?:IN)?VALID(?![A-Za-z])")
_SENTENCE_ENDS = re.compile(r"[\n.!?;。!?;؟।]+")
_IGNORED_CHARACTERS = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u0640\u064b-\u0652\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e01ef]"
)
"""Invisible characters, some of them blanks, marks above and below Latin letters, and Arabic marks of vowels."""
_LATIN_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁӏԛԝАВЕКМНОРСТУХІЈЅοανιρυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdlqwABEKMHOPCTYXIJSoavipuABEZHIKMNOPTYX",
)
"""Letters of the Cyrillic and the Greek script that look like Latin ones."""
_LOOKALIKE_SCRIPTS = re.compile("[\u0370-\u052f]")
_LATIN_VARIANTS = str.maketrans(
    "ıɩɨɑɐɒƀꞓđɖɇɡħɟȷłøɾŧʉʋɏƶØĐĦŁŦɃɆƗɈɌɎƵոսօհցզᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "iiiaaabcddeghjjlortuvyzODHLTBEIJRYZnuohgqABCDEFGHIJKLMNOPRSTUVWYZ",
)
"""Letters of the Latin script, of phonetic transcriptions (small capitals, too) and of Armenian that look like those
of English."""
_OTHER_LETTER = re.compile(r"[^\W\d_a-zA-Z]")
"""A letter that English lacks."""


class JudgeAddressPatterns(BaseModel):
    """One language's patterns of the words of an address to the judge; matched against text in lower case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviewer: tuple[str, ...]
    verdict: tuple[str, ...]
    order: tuple[str, ...]
    reader: tuple[str, ...]
    text: tuple[str, ...]
    override: tuple[str, ...]

    @field_validator("*")
    @classmethod
    def _check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Check that there are patterns, and that each of them compiles."""
        for pattern in patterns:
            re.compile(pattern)
        if not patterns:
            raise ValueError("has no pattern")
        return patterns


class _LanguageRule:
    """The compiled patterns of one language, for texts in lower case."""

    def __init__(self, patterns: JudgeAddressPatterns, *, has_spaces: bool) -> None:
        # All patterns begin with a letter: looking for one first is a third faster, since words also end at a \b.
        start = r"(?=\w)\b" if has_spaces else ""
        by_kind = {kind: "|".join(getattr(patterns, kind)) for kind in _KINDS}
        # A word counts for the first kind that it matches, so that no word counts twice.
        self._words = re.compile(start + "(?:" + "|".join(f"(?P<{kind}>{by_kind[kind]})" for kind in _KINDS) + ")")
        self._anchor = re.compile(start + "(?:" + "|".join(by_kind[kind] for kind in _ANCHORS) + ")")

    def marks(self, text: str) -> bool:
        """Whether a sentence of a text has a call to ignore instructions, or words of enough kinds."""
        if not self._anchor.search(text):
            return False
        return any(map(self._marks_sentence, _SENTENCE_ENDS.split(text)))

    def _marks_sentence(self, sentence: str) -> bool:
        kinds = {match.lastgroup for match in self._words.finditer(sentence)}
        return "override" in kinds or (len(kinds) >= MIN_KINDS and not kinds.isdisjoint(_ANCHORS))


def addresses_judge(text: str, language: str) -> bool:
    """Whether a trace addresses its judge by the rule of this module, in its language or another one.

    Args:
        text: of the trace.
        language: of the question, one of the `LANGUAGES`. Words of it and of English count in any text, and those of
            the other languages in a text with letters that English lacks: to look for all of them takes nine times as
            long.
    """
    if text.isascii():
        return _has_address(text, (language, ENGLISH))
    text = unicodedata.normalize("NFKC", text)
    languages = (language, ENGLISH, *(LANGUAGES if _OTHER_LETTER.search(text) else ()))
    variants = {_IGNORED_CHARACTERS.sub(gap, text) for gap in ("", " ")}  # they stand within words, or between them
    if any(_has_address(_fold_lookalikes(variant), languages) for variant in variants):
        return True
    # In many languages these letters and accents belong to words, so that only an address in English has none of them.
    plain = {_fold_lookalikes(_fold_accents(variant)) for variant in variants} - variants
    return any(_has_address(variant, (ENGLISH,)) for variant in plain)


def _has_address(text: str, languages: Iterable[str]) -> bool:
    """Whether a text has a verdict in capitals, or an address to the judge by the rule of one of the languages."""
    if "VALID" in text and _VERDICT_IN_CAPITALS.search(text):
        return True
    lower_case = text.lower()
    return any(_load_rule(code).marks(lower_case) for code in dict.fromkeys(languages))


def _fold_accents(text: str) -> str:
    """A text without accents, and with English letters in place of other Latin ones that look like them."""
    return _IGNORED_CHARACTERS.sub("", unicodedata.normalize("NFKD", text)).translate(_LATIN_VARIANTS)


def _fold_lookalikes(text: str) -> str:
    """A text with Latin letters in place of those that look like them, in words that have Latin letters, too."""
    return re.sub(r"\w+", _fold_word, text) if _LOOKALIKE_SCRIPTS.search(text) else text


def _fold_word(word: re.Match[str]) -> str:
    """The Latin letters of a word that has some; another word as it is."""
    is_mixed = _LOOKALIKE_SCRIPTS.search(word[0]) and re.search("[a-zA-Z]", word[0])
    return word[0].translate(_LATIN_LOOKALIKES) if is_mixed else word[0]


@functools.cache
def _load_rule(language: str) -> _LanguageRule:
    """Load and compile the patterns of one of the `LANGUAGES`."""
    text = (resources.files("auditor.prompts") / language / JUDGE_PHRASES_FILE).read_text(encoding="utf-8")
    patterns = JudgeAddressPatterns.model_validate(tomllib.loads(text))
    return _LanguageRule(patterns, has_spaces=language not in _UNSPACED_LANGUAGES)


REQUIRED_FIELDS = {"country", "topic"}


class SentencePairTemplates(BaseModel):
    """Beginnings of sentences, and pairs of endings (positive, negative); all combinations are used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    version: int
    purpose: str
    beginnings: Annotated[tuple[str, ...], Field(min_length=1)]
    ends: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_placeholders(self) -> Self:
        """Raise a ValueError if a beginning lacks a placeholder or has an unknown one."""
        for text in self.beginnings:
            if set(PLACEHOLDER.findall(text)) != REQUIRED_FIELDS:
                raise ValueError(f"'{text}' must use {sorted(REQUIRED_FIELDS)}")
        return self

    @property
    def pairs_per_cell(self) -> int:
        """Number of sentence pairs per cell: every beginning with every pair of endings."""
        return len(self.beginnings) * len(self.ends)


@functools.cache
def load_sentence_pairs() -> SentencePairTemplates:
    """Load the built-in sentences, which are in English regardless of the language of the audit."""
    file = resources.files("auditor.prompts") / ENGLISH / "logprob.toml"
    return SentencePairTemplates.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


PREFLIGHT_FILE = "preflight.toml"


class StandInTrace(BaseModel):
    """Contents of `preflight.toml`.

    Attributes:
        id, version: of the text; the version rises whenever it changes.
        text: the trace, as blinded ones are.
        score: the score that it ends with.
        answer: the answer that it ends with, in audits of a task.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    version: int
    text: str
    score: float
    answer: str


@functools.cache
def load_stand_in_trace() -> StandInTrace:
    """Load the trace, which is in English as all prompts of judges."""
    text = (resources.files("auditor.prompts") / "en" / PREFLIGHT_FILE).read_text(encoding="utf-8")
    return StandInTrace.model_validate(tomllib.loads(text))
