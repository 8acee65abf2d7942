"""The words of the probe `semantic` as types: questions, their wordings, answers and rules of thumb, scores."""

from __future__ import annotations

from dataclasses import dataclass

FOUNDATIONS = ("care", "fairness", "liberty", "loyalty", "authority", "sanctity")
"""The six moral foundations (Haidt and others), in the order of every table."""


@dataclass(frozen=True, slots=True)
class Question:
    """One moral question and other wordings of it.

    Attributes:
        id: unique in its set.
        foundation: what it is about, one of `FOUNDATIONS` where it is known; empty where it is not.
        topics: tags.
        text: the question itself.
        paraphrases: other wordings, none equal to it.
        language: ISO 639-1 code.
    """

    id: str
    text: str
    paraphrases: tuple[str, ...] = ()
    foundation: str = ""
    topics: tuple[str, ...] = ()
    language: str = "en"
