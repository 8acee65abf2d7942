"""The conversations of the probe: which views users state, and in which words."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

from pydantic import Field

import auditor.probes as ap
from auditor.probes.pressure.settings import Context, PressureSettings

if TYPE_CHECKING:
    from auditor.config import ModelSection

Audit: TypeAlias = ap.ProbeAudit[PressureSettings]
PROMPT = "pressure"
ARMS = ("pro", "contra", "neutral")
"""The conversations on a cell: with a view for acceptance, with one against it, and without a view."""
CONTEXTS: tuple[Context, ...] = ("in-context", "pre-emptive")
STRENGTHS = (0.4, 0.6, 0.8)
"""Distances of a view from 0. None is at an end of the scale, where a score cannot err in both directions."""
PARTS = ("country", "pro", "contra", "insist", "sure", "withdraw", "again", "form")
"""The paragraphs of the template, in order."""
MAX_REMEMBERED = 1000
"""Lots, and texts of users, in memory: every model and arm has the same ones."""
TEXT_PROVIDERS = ("azure_text", "text-completion-codestral")
"""Providers of completions of texts, besides those that are known to have nothing else."""
MIN_REGION_COUNTRIES = 5
"""Fewest countries of a region that is compared with the others."""


class RevisedJudgement(ap.Structure):
    """A score that is given again."""

    reasoning: Annotated[str, Field(min_length=1, description="Why, in one or two sentences.")]
    score: Annotated[float, Field(ge=-1, le=1, description="From -1 (never) to 1 (always).")]


class Lot(NamedTuple):
    """What was drawn for a cell; it is the same for every model.

    Attributes:
        views: scores that the users for and against acceptance state, by arm.
        names_country: whether users say that they live in the country.
    """

    views: Mapping[str, float]
    names_country: bool


def draw_lot(audit: Audit, unit: ap.Unit) -> Lot:
    """Draw the views of a cell's users, from the audit's seed."""
    return _draw_lot(audit.config.seed, audit.settings.user_country, unit)


@lru_cache(maxsize=MAX_REMEMBERED)
def _draw_lot(seed: int, user_country: str, unit: ap.Unit) -> Lot:
    rng = random.Random(f"{seed} pressure {json.dumps(unit)}")
    views = {"pro": rng.choice(STRENGTHS), "contra": -rng.choice(STRENGTHS)}
    choice = rng.random() < 0.5
    return Lot(views, choice if user_country == "lot" else user_country == "stated")


def number_conversation(context: str, arm: str) -> int:
    """Number of a conversation among those on a cell, from 0."""
    return len(ARMS) * CONTEXTS.index(context) + ARMS.index(arm)


def find_conversation(number: int) -> tuple[Context, str]:
    """Context and arm of a conversation by its number."""
    return CONTEXTS[number // len(ARMS)], ARMS[number % len(ARMS)]


def find_first_answers(audit: Audit, model: str, units: Sequence[ap.Unit]) -> dict[ap.Unit, ap.Trace]:
    """The first usable recorded answer of a model to the direct question on each of some cells that has one."""
    answers: dict[ap.Unit, ap.Trace] = {}
    for trace in audit.load_traces(model, units):
        if trace.outcome == "ok":
            answers.setdefault(tuple(trace.cell), trace)
    return answers


def open_conversations(audit: Audit, answers: Sequence[ap.Trace]) -> Iterator[ap.Question]:
    """Yield the first question of each conversation that goes on from recorded answers."""
    for trace in answers:
        question = tuple(audit.load_question(trace))
        for context in audit.settings.contexts:
            for arm in ARMS:
                text = write_turn(audit, tuple(trace.cell), context, arm, 0, trace.language)
                if context == "in-context":
                    score = json.dumps({"reasoning": trace.text or "", "score": trace.score}, ensure_ascii=False)
                    messages = (*question, ap.Message("assistant", score), ap.Message("user", text))
                else:
                    messages = _extend(question, text)
                yield _ask(audit, tuple(trace.cell), messages, number_conversation(context, arm), trace.language)


def continue_conversation(audit: Audit, turns: Sequence[ap.Turn]) -> ap.Question | None:
    """Build the next question of a conversation; None after the last one, and after an answer without a score."""
    first, last = turns[0].question, turns[-1]
    if last.result.outcome != "ok" or len(turns) >= audit.settings.n_turns:
        return None
    context, arm = find_conversation(first.sample)
    text = write_turn(audit, first.unit, context, arm, len(turns), first.language)
    return _ask(audit, first.unit, (*last.messages, ap.Message("user", text)), first.sample, first.language)


def write_turn(audit: Audit, unit: ap.Unit, context: str, arm: str, turn: int, language: str) -> str:
    """Write what the user says at a turn, counted from 0; the turns after those of pressure end it."""
    lot, settings = draw_lot(audit, unit), audit.settings
    parts = load_parts(language, f"{lot.views.get(arm, 0.0):+.1f}")
    if arm == "neutral":
        is_first = turn == 0 and context == "pre-emptive"  # there is no answer yet to be sure of
        names = [] if is_first else ["sure"] if turn < settings.turns else ["again"]
    elif turn >= settings.turns:
        names = ["withdraw", "again"] if settings.release == "withdraw" else ["again"]
    elif turn:
        names = ["insist", "again"]
    else:
        names = ["country", arm] if lot.names_country else [arm]
    return " ".join(parts[name] for name in (*names, "form"))


@lru_cache(maxsize=MAX_REMEMBERED)
def load_parts(language: str, view: str) -> Mapping[str, str]:
    """Load what users say in a language, by the names in `PARTS`."""
    *_, message = ap.load_prompt(PROMPT, language).render(view=view)
    return dict(zip(PARTS, message.content.split("\n\n"), strict=True))


def _ask(audit: Audit, unit: ap.Unit, messages: tuple[ap.Message, ...], number: int, language: str) -> ap.Question:
    """Build a question of a conversation."""
    settings = audit.settings
    return ap.Question(unit, messages, number, RevisedJudgement, settings.temperature, settings.max_tokens, language)


def _extend(question: tuple[ap.Message, ...], text: str) -> tuple[ap.Message, ...]:
    """Add a text to the last message of a question."""
    if not question:
        return (ap.Message("user", text),)
    return (*question[:-1], ap.Message(question[-1].role, f"{question[-1].content}\n\n{text}"))


# --- what can be measured -----------------------------------------------------------------------------------------


def explain_without_turns(model: ModelSection) -> str:
    """Explain why a model cannot hold a conversation of several turns; empty if it can."""
    provider = model.provider.prefix
    if provider == "replay":
        return "its answers come from a file"
    if model.provider.completions == "always" or provider in TEXT_PROVIDERS:
        return "its endpoint completes a text and takes no turns"
    return ""


def list_regions(audit: Audit) -> dict[str, list[str]]:
    """The regions of the audit's grouping with enough countries in the drawn cells, with these countries."""
    grouping = audit.survey.grouping
    region_by_country = grouping.region_by_country if grouping is not None else {}
    countries: dict[str, list[str]] = {}
    for country in dict.fromkeys(cell.country for cell in audit.draw_cells(audit.settings.cells)):
        if country in region_by_country:
            countries.setdefault(region_by_country[country], []).append(country)
    return {region: names for region, names in countries.items() if len(names) >= MIN_REGION_COUNTRIES}
