"""A conflict as shown to a rater: sides in an order that reveals nothing, masked authors, and compared texts."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from auditor.agents.blinding import author_names, mask_authors
from auditor.config import load_stored_config
from auditor.domain import Decision, Rating, SurveyCell, Verdict
from auditor.errors import UsageError
from auditor.prompts.language_data import addresses_judge
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictEffect, ConflictKey, QueueRow
from auditor.storage.evidence import BlindedSample
from auditor.storage.rating_log import RatingEntry
from auditor.text_safety import clean_name, escape_invisible, find_lookalike, make_name_speller

DecisionT = TypeVar("DecisionT", Decision, Decision | None)


class SideOrder:
    """The order of the sides for one rater in one audit; the same in every session."""

    def __init__(self, audit_name: str, rater: str) -> None:
        self._audit_name = audit_name
        self._rater = rater

    def is_swapped(self, key: ConflictKey) -> bool:
        """Whether this rater sees the stored left side of a conflict on the right: so for half of them, by a hash."""
        return hash_to_fraction("side", self._audit_name, self._rater, *key) < 0.5

    def show_row(self, row: QueueRow) -> QueueRow:
        """Return a row of the queue with scores, answers and decision for the sides as shown to the rater."""
        if not self.is_swapped(row.key):
            return row
        return replace(
            row,
            score_left=row.score_right,
            score_right=row.score_left,
            answer_left=row.answer_right,
            answer_right=row.answer_left,
            decision=mirror_decision(row.decision, swapped=True),
        )

    def show_entry(self, entry: RatingEntry) -> RatingEntry:
        """Return an entry of the log with its decision about the sides as shown to the rater."""
        rating: Rating = entry.rating
        decision = mirror_decision(rating.decision, self.is_swapped(entry.key))
        return entry._replace(rating=replace(rating, decision=decision))


def mirror_decision(decision: DecisionT, swapped: bool) -> DecisionT:
    """Return the decision about the sides in their other order if they are swapped."""
    return decision.mirrored if swapped and decision is not None else decision


def hash_to_fraction(*parts: str) -> float:
    """Hash texts to a number in [0, 1): pseudo-random, but the same for the same texts in every session."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


# Letters and digits, with apostrophes inside the word.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MAX_SHORT_WORD = 3
# A sentence ends at a full stop, question or exclamation mark before a space, or at the end of a line.
_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?…。！？]+(?=\s|$)|(?=\n)|$)")
MIN_SHARED_WORDS = 0.5
"""Share of the shorter text's words that the other text must use too for a comparison by words."""
MIN_SENTENCE_OVERLAP = 0.2
"""Jaccard index of the words of two sentences from which on one is a counterpart of the other."""


class DifferenceUnit(StrEnum):
    """What the marks on two compared texts are."""

    WORDS = "words"
    SENTENCES = "sentences"
    ENTIRE_TEXT = "entire text"
    """Nothing is marked: no sentence has a counterpart in the other text."""


@dataclass(frozen=True, slots=True)
class TextDifference:
    """What is only in one of two texts: (start, end) in characters, in order, and whether these are words."""

    spans: list[tuple[int, int]]
    unit: DifferenceUnit


def find_differences(text: str, other_text: str) -> TextDifference:
    """Return what `text` says and `other_text` does not: words if the texts share most words, else sentences.

    Marks on single words would cover most of two texts that share few words. There a sentence is marked that has no
    counterpart in the other text; if none has one, nothing is marked.
    """
    words, other_words = _content_words(text), _content_words(other_text)
    n_shorter = min(len(words), len(other_words))
    if not n_shorter or len(words & other_words) >= MIN_SHARED_WORDS * n_shorter:
        return TextDifference(find_unique_words(text, other_text), DifferenceUnit.WORDS)
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    other_sentences = [_content_words(match.group()) for match in _SENTENCE.finditer(other_text)]
    unmatched = [
        (start, end)
        for start, end in sentences
        if not _has_counterpart(_content_words(text[start:end]), other_sentences)
    ]
    if len(unmatched) == len(sentences):
        return TextDifference([], DifferenceUnit.ENTIRE_TEXT)
    return TextDifference(unmatched, DifferenceUnit.SENTENCES)


def _has_counterpart(words: set[str], other_sentences: list[set[str]]) -> bool:
    """Whether a sentence, given by its words, overlaps one of some others by at least `MIN_SENTENCE_OVERLAP`."""
    return not words or any(
        len(words & other) >= MIN_SENTENCE_OVERLAP * len(words | other) for other in other_sentences
    )


def _content_words(text: str) -> set[str]:
    """Return the words of a text that are compared, folded."""
    words = (match.group() for match in _WORD.finditer(text))
    return {_fold_word(word) for word in words if _is_content_word(word)}


def find_unique_words(text: str, other_text: str) -> list[tuple[int, int]]:
    """Return the words of `text` that do not occur in `other_text`, as (start, end) in characters.

    Case and a final s are ignored. Words of up to three letters are ignored too, since most are function words, unless
    they are digits or in a script without case.
    """
    other_words = {_fold_word(match.group()) for match in _WORD.finditer(other_text)}
    return [
        match.span()
        for match in _WORD.finditer(text)
        if _is_content_word(match.group()) and _fold_word(match.group()) not in other_words
    ]


def _is_content_word(word: str) -> bool:
    """Whether a word is compared: it has over three letters, or is digits, or is in a script without case."""
    return len(word) > _MAX_SHORT_WORD or word.isdigit() or word.lower() == word.upper()


def _fold_word(word: str) -> str:
    """Return a word in lower case, and without its final s if it has over three letters."""
    folded = word.casefold()
    return folded[:-1] if len(folded) > _MAX_SHORT_WORD and folded.endswith("s") else folded


def escape_unstorable(text: str) -> str:
    """Escape lone surrogates and NUL characters of a typed or pasted text, which databases cannot store."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "␀")


def require_rater_name(name: str) -> str:
    """Return a rater's name; UsageError if it is empty."""
    if not clean_name(name).strip():
        raise UsageError("a rater needs a name.", "Give one, as in --rater ada.")
    return name


def choose_rater(name: str, known: Collection[str]) -> str:
    """Return a rater's name as it is stored.

    Args:
        name: as the rater gives it.
        known: the raters of the audit so far.

    Raises:
        UsageError: the name is empty, or looks like that of another rater: one person would be two raters, who agree
            with each other.
    """
    rater = escape_unstorable(make_name_speller(known)(require_rater_name(name)))
    twin = find_lookalike(rater, known)
    if twin is not None:
        raise UsageError(
            f"the rater '{escape_invisible(rater)}' differs from '{escape_invisible(twin)}', who has rated this audit "
            "before, in capital letters or spaces only.",
            f"Go on with --rater {shlex.quote(twin)}, or take a name that differs in more.",
        )
    return rater


JUDGE_ADDRESS_LABEL = "addresses its judge"
"""Mark of a sample that speaks to whoever judges it."""


def addresses_its_judge(sample: BlindedSample) -> bool:
    """Whether a sample has a text that addresses its judge."""
    return sample.text is not None and addresses_judge(sample.text, sample.language)


@dataclass(frozen=True, slots=True)
class ReviewSide:
    """One side as shown; author is None and verdicts empty while blind."""

    score: float | None
    samples: tuple[BlindedSample, ...]
    author: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    answer: str | None = None
    """Answer to an item of a task; None for a survey."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One conflict as shown to the rater.

    Attributes:
        question: the survey's wording about this cell, or the item of the task.
        has_norms: whether a usable sample's first paragraph states the country's norms, and the rest its reasoning.
        swapped: whether the stored left side is shown on the right.
        decision: the rater's decision about the sides as shown; None if they never decided.
        revealed: whether authors, verdicts and survey are included.
        disclosed_elsewhere: which of these the rater has seen in another conflict on the same cell, as in
            `Rating.shown`; if it is not empty, a decision is not blind.
        correct_answer: the correct answer to an item of a task, if it is known and revealed.
        first_decision: the rater's first decision that resolved the conflict, if it differs from the current one.
        needs_second_rater: whether one other person has decided, and a second decision is required.
        effect: how much a decision can change the conclusion on the sides, if the list is sorted by that; else None.
        shown_at: time in seconds of `time.monotonic` at which the item was loaded.
    """

    key: ConflictKey
    row: QueueRow
    question: str
    has_norms: bool
    left: ReviewSide
    right: ReviewSide
    swapped: bool
    decision: Decision | None
    revealed: bool
    disclosed_elsewhere: str
    survey: SurveyCell | None
    correct_answer: str | None
    first_decision: Decision | None
    needs_second_rater: bool
    effect: ConflictEffect | None
    shown_at: float

    @property
    def possible_decisions(self) -> tuple[Decision, ...]:
        """The decisions that the rater can make; a custom score needs sides that have scores."""
        has_scores = self.left.score is not None and self.right.score is not None
        return tuple(decision for decision in Decision if has_scores or not decision.needs_score)


class AuthorMask:
    """Masks the names of an audit's models and of their providers."""

    def __init__(self, audit: Audit) -> None:
        config = load_stored_config(audit.config)
        self._models = [(model.name, model.model) for model in config.models] if config else []

    def preload(self) -> None:
        """Load the word lists for masking, so that the first conflict opens as fast as later ones."""
        self._mask("-")

    def blind_side(self, side: ReviewSide) -> ReviewSide:
        """Return the side with names masked in the texts of its samples."""
        return replace(side, samples=tuple(replace(sample, text=self._mask(sample.text)) for sample in side.samples))

    def _mask(self, text: str | None) -> str | None:
        """Mask names in a text; None stays None."""
        provider_names = [name for _, model in self._models for name in model.split("/")]
        return text and mask_authors(text, [*author_names(tuple(self._models)), *provider_names])
