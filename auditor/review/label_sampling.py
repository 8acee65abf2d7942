"""Draw the random sample of an audit that people label, extend it, and show a unit as a judge sees it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from auditor.config import AuditConfig, ModelSection, SurveySection, load_stored_config
from auditor.domain import Cell, Message, Outcome, Trace, derive_seed
from auditor.domain.decisions import aspect_questions
from auditor.domain.labels import DrawnUnit, Label, LabelDraw, LabelKind, LabelUnit, Stratum
from auditor.errors import ReviewError, UsageError, did_you_mean, format_count
from auditor.metrics.labels.label_plan import draw_stratified_sample
from auditor.review.item import hash_to_fraction
from auditor.storage import audits, labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.labels import (
    REVIEW_SOURCE,
    LabelableUnit,
    hash_population,
    load_labelable_units,
    select_drawable_units,
)
from auditor.storage.ledger import load_transcripts
from auditor.storage.probe_results import find_label_form, find_labelled_probe
from auditor.surveys import get_grouping

if TYPE_CHECKING:
    from auditor.domain import Survey


NO_SUCH_UNIT = "It no longer exists, since the audit was run again."
TRACE_QUESTION = "Can the reasoning stand as a whole?"
TASK_TRACE_QUESTION = "Can reasoning and answer stand?"


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A unit as a rater sees it.

    Attributes:
        question: what the rater answers, in one line.
        instructions: the judge's system message.
        material: the judge's user message, with the text to judge.
        aspects: question by name of each aspect that the judge is asked about.
        missing: why there is nothing to label; empty if there is.
    """

    unit: LabelUnit
    question: str
    instructions: str = ""
    material: str = ""
    aspects: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    @property
    def text_hash(self) -> str:
        """SHA-256 of the text that the rater reads, in hexadecimal digits."""
        text = f"{self.instructions}\n\n{self.material}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class LabelItemLoader:
    """Loads the units of an audit's samples as one rater sees them.

    Attributes:
        config: the audit's configuration; with the defaults for an imported audit.
    """

    def __init__(self, db: Database, audit: Audit, rater: str) -> None:
        self.db, self.audit, self.rater = db, audit, rater
        self._survey: Survey = audits.load_audit_survey(db, audit)
        self._is_task_audit = self._survey.task is not None
        self.config = load_stored_config(audit.config) or _build_import_config(db, audit)

    def load(self, unit: LabelUnit) -> LabelItem:
        """Load a unit; its `missing` says why if it cannot be labelled."""
        if unit.kind is LabelKind.TRACE:
            return self._load_trace(unit)
        return find_labelled_probe(unit.kind).load_label_item(self, unit)

    # --- traces

    def _load_trace(self, unit: LabelUnit) -> LabelItem:
        """Load a trace as its judges read it: their recorded request, or the one that they would get."""
        model, country, topic, sample = unit.parts
        question = TASK_TRACE_QUESTION if self._is_task_audit else TRACE_QUESTION
        cell = Cell(country, topic)
        stored_traces = results.load_traces(self.db, self.audit.id, [cell], model=model)
        trace = next((stored for stored in stored_traces if stored.sample == int(sample)), None)
        if trace is None:
            return LabelItem(unit, question, missing=NO_SUCH_UNIT)
        if trace.outcome is not Outcome.OK or not trace.text:
            return LabelItem(unit, question, missing=f"It has no text to judge (outcome: {trace.outcome}).")
        verdicts = [
            verdict
            for verdict in results.load_verdicts(self.db, self.audit.id, [cell], model=model)
            if verdict.sample == trace.sample and verdict.key is not None
        ]
        verdicts.sort(key=lambda verdict: (self._has_custom_prompt(verdict.judge), verdict.judge))
        messages = self.find_messages([verdict.key or "" for verdict in verdicts]) or self._build_review(trace)
        return self.fill_in(unit, question, messages)

    def _has_custom_prompt(self, judge_name: str) -> bool:
        """Whether a judge has a review prompt or a system text of its own, which other judges do not see."""
        judge = self.config.models_by_name.get(judge_name)
        return judge is not None and (judge.review_prompt is not None or judge.system is not None)

    def _build_review(self, trace: Trace) -> Sequence[Message]:
        """Build the request about a trace on which no judge was asked."""
        from auditor.agents.call_builders import blind_trace, build_review_call  # loads word lists

        reader = stand_in_judge()
        text = blind_trace(self.config, self._survey, trace)
        return build_review_call(self.config, self._survey, reader, trace, text).messages

    # --- requests

    def find_messages(self, keys: Sequence[str]) -> Sequence[Message]:
        """Return the recorded messages of the first call that has any; empty if none has."""
        recorded = load_transcripts(self.db, keys)
        return next((recorded[key].messages for key in keys if key in recorded and recorded[key].messages), ())

    def fill_in(self, unit: LabelUnit, question: str, messages: Sequence[Message]) -> LabelItem:
        """Build the item from a judge's messages, with the aspects that they ask for."""
        instructions = "\n\n".join(message.content for message in messages if message.role == "system")
        material = "\n\n".join(message.content for message in messages if message.role == "user")
        aspects = {
            name: asked.question
            for name, asked in aspect_questions(for_task=self._is_task_audit).items()
            if unit.kind is LabelKind.TRACE and f'"{asked.key}"' in instructions
        }
        return LabelItem(unit, question, instructions, material, aspects)


def hash_shown_text(db: Database, audit: Audit, label: Label) -> str:
    """SHA-256 of the text of a label's unit as its rater would read it now, in hexadecimal digits."""
    return LabelItemLoader(db, audit, label.rater).load(label.unit).text_hash


def stand_in_judge() -> ModelSection:
    """A judge with no prompt of its own, in whose place the rater stands."""
    return ModelSection(name="rater", model="person/rater")


def _build_import_config(db: Database, audit: Audit) -> AuditConfig:
    """Configuration with the defaults and an imported audit's models, whose names are masked in the texts."""
    names = results.list_models(db, audit.id) or ["unknown"]
    models = [ModelSection.model_construct(name=name, model=f"imported/{'-'.join(name.split())}") for name in names]
    return AuditConfig(name="imported", survey=SurveySection(source="imported"), models=models, judges=[])


TRACE_ATTRIBUTES = ("language", "region", "model", "verdict", "topic")
"""What a sample of traces can be stratified by."""
DEFAULT_TRACE_STRATA = ("model", "verdict")
NO_REGION = "none"
"""Stratum of a country that is in no region of the survey's grouping."""


@dataclass(frozen=True, slots=True)
class DrawResult:
    """A sample after a command that drew, extended or opened it.

    Attributes:
        n_sampled: units in the sample.
        n_added: units that this command added.
        n_population: units that could be drawn.
        n_strata: strata with a sampled unit.
        stratify: names of the attributes that make the strata; empty if the sample was imported.
        n_unjudged: traces that could not be drawn, since no judge has a usable verdict on them.
    """

    n_sampled: int
    n_added: int
    n_population: int
    n_strata: int
    stratify: tuple[str, ...]
    n_unjudged: int = 0


def draw_label_sample(
    db: Database,
    audit: Audit,
    kind: LabelKind,
    n: int | None = None,
    *,
    stratify: Sequence[str] | None = None,
    redraw: bool = False,
) -> DrawResult:
    """Draw the sample of an audit, extend it to `n` units, or open it as it is.

    Args:
        n: size of the sample; a smaller one than the sample in force changes nothing. None opens the sample in force.
        stratify: attributes of `TRACE_ATTRIBUTES` or `label_form`; None: those of the sample in force, or the default.
        redraw: draw a new sample of what the audit has now. With the same strata, most units stay in the sample.

    Raises:
        UsageError: an unknown attribute, or one that differs from those of the sample in force; no sample to open; or
            the sample was imported.
        ReviewError: the audit has no unit of this kind, or has other units or texts than when the sample was drawn.
    """
    all_units = load_labelable_units(db, audit.id, kind)
    draw = None if redraw else labels.load_draw(db, audit.id, kind)
    units = select_drawable_units(all_units, draw)
    if not units:
        raise ReviewError(f"audit '{audit.name}' has no {kind.noun} to label.", _explain_missing(kind))
    result = _draw_or_open(db, audit, units, n, stratify, redraw=redraw)
    n_unjudged = len(all_units) - len(units) if kind is LabelKind.TRACE else 0
    return replace(result, n_unjudged=n_unjudged)


def _draw_or_open(
    db: Database,
    audit: Audit,
    units: Sequence[LabelableUnit],
    n: int | None,
    stratify: Sequence[str] | None,
    *,
    redraw: bool,
) -> DrawResult:
    """Implement `draw_label_sample` on the units that can be drawn."""
    kind = units[0].unit.kind
    draw = labels.load_draw(db, audit.id, kind)
    if draw is not None and draw.source != REVIEW_SOURCE:
        return _open_imported(db, audit, draw, n, redraw)
    if draw is None or redraw:
        if n is None:
            raise UsageError(
                f"audit '{audit.name}' has no label sample of {kind.noun}s yet.", "Draw one with --sample 200."
            )
        attributes = _check_stratify(
            kind,
            stratify
            or (
                draw.stratify
                if draw
                else (DEFAULT_TRACE_STRATA if kind is LabelKind.TRACE else find_label_form(kind).stratify)
            ),
        )
        return _draw_new(db, audit, units, attributes, n, draw.id if draw else 0)
    if stratify is not None and tuple(stratify) != draw.stratify:
        raise UsageError(
            f"the label sample of audit '{audit.name}' is stratified by {','.join(draw.stratify)}.",
            "Leave out --stratify, or draw a new label sample with --redraw.",
        )
    require_unchanged_population(db, audit, draw, units)
    place_by_unit = {unit.unit: place for place, unit in enumerate(units)}
    sampled = [place_by_unit[sampled.unit] for sampled in labels.load_label_sample(db, audit.id, draw.kind)]
    added = _select_units(draw, units, n, sampled) if n is not None else []
    if added:
        labels.extend_draw(db, audit.id, draw, added, len(sampled))
    before = [_to_drawn(draw, units, place, Counter(draw.strata)) for place in sampled]
    return _describe(draw, [*before, *added], len(added))


def require_unchanged_population(db: Database, audit: Audit, draw: LabelDraw, units: Sequence[LabelableUnit]) -> None:
    """Raise ReviewError if the audit has other units, or units with other texts, than when a sample was drawn."""
    if hash_population(units) == draw.population_hash:
        return
    contents = {unit.unit: unit.content for unit in units}
    sampled = labels.load_sampled_contents(db, draw)
    n_gone = sum(unit not in contents for unit in sampled)
    n_changed = sum(unit in contents and contents[unit] != content for unit, content in sampled.items())
    noun = f"{draw.kind.noun}s"
    raise ReviewError(
        f"the {noun} of audit '{audit.name}' have changed since its label sample was drawn: there were "
        f"{format_count(draw.population)}, and there are {format_count(len(units))} now. Of the "
        f"{format_count(len(sampled))} sampled {noun}, {format_count(n_gone)} no longer "
        f"exist and {format_count(n_changed)} have another text.",
        f"Draw a new label sample with --sample {len(sampled)} --redraw. Most sampled {noun} stay in it, and labels of "
        "unchanged texts still count.",
    )


def _draw_new(
    db: Database, audit: Audit, units: Sequence[LabelableUnit], stratify: tuple[str, ...], n: int, previous_id: int
) -> DrawResult:
    """Draw and store a sample of `n` units; `previous_id` is the id of the draw in force, 0 if there is none."""
    config = load_stored_config(audit.config)
    draw = LabelDraw(
        id=0,
        kind=units[0].unit.kind,
        source=REVIEW_SOURCE,
        seed=derive_seed(config.seed if config else 0, "labels"),
        stratify=stratify,
        strata=_assign_strata(db, audit, units, stratify),
        population=len(units),
        population_hash=hash_population(units),
    )
    drawn = _select_units(draw, units, n, ())
    labels.save_draw(db, audit.id, draw, drawn, previous_id)
    return _describe(draw, drawn, len(drawn))


def _select_units(draw: LabelDraw, units: Sequence[LabelableUnit], n: int, sampled: Sequence[int]) -> list[DrawnUnit]:
    """Select the units that a sample of `n` has in addition to those at the positions `sampled`, in labelling order."""
    stratum_sizes = Counter(draw.strata)
    number = {stratum: i for i, stratum in enumerate(stratum_sizes)}
    random_numbers = [hash_to_fraction("label", str(draw.seed), unit.unit.kind, *unit.unit.parts) for unit in units]
    places = draw_stratified_sample(
        [number[stratum] for stratum in draw.strata], random_numbers, n, drawn=sampled
    ).tolist()
    return [_to_drawn(draw, units, place, stratum_sizes) for place in places]


def _to_drawn(
    draw: LabelDraw, units: Sequence[LabelableUnit], place: int, stratum_sizes: Counter[Stratum]
) -> DrawnUnit:
    stratum = draw.strata[place]
    return DrawnUnit(units[place].unit.parts, stratum, stratum_sizes[stratum], units[place].content)


def _assign_strata(
    db: Database, audit: Audit, units: Sequence[LabelableUnit], stratify: Sequence[str]
) -> tuple[Stratum, ...]:
    """Stratum of each unit: its values of some attributes."""
    regions = get_grouping(audits.load_audit_survey(db, audit)).region_by_country if "region" in stratify else {}

    def find_value(unit: LabelableUnit, name: str) -> str:
        """Value of an attribute of a unit."""
        if name == "region":
            return regions.get(unit.attributes["country"], NO_REGION)
        return unit.attributes[name]

    return tuple(tuple(find_value(unit, name) for name in stratify) for unit in units)


def _check_stratify(kind: LabelKind, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of attributes without duplicates; raise UsageError if one is unknown."""
    known = TRACE_ATTRIBUTES if kind is LabelKind.TRACE else find_label_form(kind).stratify
    for name in names:
        if name not in known:
            raise UsageError(
                f"a label sample of {kind.noun}s cannot be stratified by '{name}'.",
                did_you_mean(name, known, f"Possible: {','.join(known)}."),
            )
    return tuple(dict.fromkeys(names))


def _open_imported(db: Database, audit: Audit, draw: LabelDraw, n: int | None, redraw: bool) -> DrawResult:
    """Open a sample that was imported; raise UsageError for a request to draw."""
    if n is not None or redraw:
        raise UsageError(
            f"audit '{audit.name}' has a label sample of {draw.kind.noun}s that was imported from {draw.source}, so no "
            "other can be drawn.",
            "Use --sample without a number to label the imported sample.",
        )
    sampled = labels.load_label_sample(db, audit.id, draw.kind)
    n_strata = len({unit.stratum for unit in sampled})
    return DrawResult(len(sampled), 0, draw.population, n_strata, ())


def _describe(draw: LabelDraw, sampled: Sequence[DrawnUnit], n_added: int) -> DrawResult:
    """Describe a sample after `n_added` of its units were added."""
    n_strata = len({unit.stratum for unit in sampled})
    return DrawResult(len(sampled), n_added, draw.population, n_strata, draw.stratify)


def _explain_missing(kind: LabelKind) -> str:
    """How to get units of a kind."""
    if kind is LabelKind.TRACE:
        return "Run the audit first; only traces with a readable answer can be labelled."
    return find_label_form(kind).source
