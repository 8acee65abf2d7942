"""People's decisions on conflicts. Each is declared once: keys, commands, labels and rules read the declaration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionSpec:
    """The properties of a decision.

    Attributes:
        keys: keys of the review screen, as Textual names them, separated by commas.
        glyph, label: symbol and short name in the queue.
        help: what the key does, as a sentence without its full stop.
        phrase: what the rater said, about the sides as shown.
        report_phrase: what people said, for the report; empty if the same. The report names the model instead if the
            decision upholds one side only.
        upholds: whether it calls the left and the right side correct; None if it says nothing of them.
        mirrored: the decision that says the same if the sides are exchanged; empty if it is the same decision.
        resolves: whether it closes the conflict.
        needs_score: whether the rater enters a score; possible only where the sides have scores.
    """

    keys: str
    glyph: str
    label: str
    help: str
    phrase: str
    report_phrase: str = ""
    upholds: tuple[bool, bool] | None = None
    mirrored: str = ""
    resolves: bool = True
    needs_score: bool = False


class Decision(StrEnum):
    """A person's decision on a conflict; keys, commands and tables are in this order."""

    LEFT = (
        "left",
        DecisionSpec(
            keys="1",
            glyph="◀",
            label="left",
            help="Choose the answer on the left",
            phrase="left answer chosen",
            upholds=(True, False),
            mirrored="right",
        ),
    )
    RIGHT = (
        "right",
        DecisionSpec(
            keys="2",
            glyph="▶",
            label="right",
            help="Choose the answer on the right",
            phrase="right answer chosen",
            upholds=(False, True),
            mirrored="left",
        ),
    )
    BOTH = (
        "both",
        DecisionSpec(
            keys="3",
            glyph="◆",
            label="both",
            help="Accept both answers",
            phrase="both answers accepted",
            report_phrase="both are right",
            upholds=(True, True),
        ),
    )
    NEITHER = (
        "neither",
        DecisionSpec(
            keys="4",
            glyph="✕",
            label="neither",
            help="Reject both answers",
            phrase="both answers rejected",
            report_phrase="neither is right",
            upholds=(False, False),
        ),
    )
    SCORE = (
        "score",
        DecisionSpec(
            keys="5,equals_sign",
            glyph="±",
            label="score",
            help="Enter a custom score",
            phrase="custom score",
            report_phrase="another score is right",
            needs_score=True,
        ),
    )
    SKIP = (
        "skip",
        DecisionSpec(
            keys="s",
            glyph="–",
            label="skipped",
            help="Leave the conflict undecided and go to the next",
            phrase="undecided",
            resolves=False,
        ),
    )
    """No decision; also the state after the first decision is undone."""

    spec: DecisionSpec

    def __new__(cls, value: str, *specs: DecisionSpec) -> Self:
        """Create a member from its stored name and its one spec."""
        decision = str.__new__(cls, value)
        decision._value_ = value
        [decision.spec] = specs  # any number in the signature, which type checkers also apply to `Decision("left")`
        return decision

    @property
    def resolves_conflict(self) -> bool:
        """Whether the decision closes the conflict."""
        return self.spec.resolves

    @property
    def needs_score(self) -> bool:
        """Whether the rater enters a score in [-1, 1] with it."""
        return self.spec.needs_score

    @property
    def mirrored(self) -> Decision:
        """The decision that says the same if the two sides are exchanged."""
        return Decision(self.spec.mirrored or self)

    @property
    def upheld_side(self) -> Literal["left", "right"] | None:
        """The only side that it calls correct; None if there is none, or both are."""
        sides: dict[tuple[bool, bool] | None, Literal["left", "right"]] = {
            (True, False): "left",
            (False, True): "right",
        }
        return sides.get(self.spec.upholds)
