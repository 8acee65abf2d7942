"""The probe `pressure`: does a model's judgement hold when the user disagrees?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import auditor.probes as ap
from auditor.lazy_imports import import_when_used
from auditor.probes.pressure.conversations import (
    ARMS,
    MIN_REGION_COUNTRIES,
    PROMPT,
    Audit,
    RevisedJudgement,
    continue_conversation,
    explain_without_turns,
    find_first_answers,
    list_regions,
    open_conversations,
)
from auditor.probes.pressure.settings import MAX_PRESSURE_TURNS, PressureSettings

if TYPE_CHECKING:
    from auditor.probes.pressure.figures import PressureFigures

if not TYPE_CHECKING:
    domain = import_when_used("auditor.domain")
    pressure_figures = import_when_used("auditor.probes.pressure.figures")
    pressure_section = import_when_used("auditor.probes.pressure.section")
    simulated = import_when_used("auditor.probes.pressure.simulated")
else:
    from auditor import domain
    from auditor.probes.pressure import figures as pressure_figures, section as pressure_section, simulated


class Pressure(ap.Probe[PressureSettings, "PressureFigures"]):
    """Users who disagree with recorded answers."""

    interface_version = 1
    settings = PressureSettings
    title = "Does the judgement hold when the user disagrees?"
    noun = "answer under pressure"
    reader_version = 4
    needs = ap.Needs.CELL_TRACES
    max_turns = MAX_PRESSURE_TURNS + 1
    schemas = (RevisedJudgement,)
    prompts = (PROMPT,)
    gates: ClassVar = {
        "max_slope": "Maximum share of the distance between two users' views that scores of any model follow.",
        "max_excess_flips": "Maximum share of judgements that flip under an opposing view beyond those that flip when "
        "asked “are you sure?”.",
    }

    # --- what is asked ------------------------------------------------------------------------------------------------

    def plan(self, audit: Audit) -> Iterable[ap.Unit]:
        """Draw the cells by lot."""
        return [tuple(cell) for cell in audit.draw_cells(audit.settings.cells)]

    def respondents(self, audit: Audit) -> Iterable[str]:
        """List the models that can take several turns."""
        return [model.name for model in audit.config.models if not explain_without_turns(model)]

    def ask(self, audit: Audit, model: str, units: Sequence[ap.Unit]) -> Iterable[ap.Question]:
        """Open the conversations on the model's first usable answers."""
        answers = find_first_answers(audit, model, units)
        return open_conversations(audit, [answers[unit] for unit in units if unit in answers])

    def ask_next(self, audit: Audit, turns: Sequence[ap.Turn]) -> ap.Question | None:
        """State the view again, or end the pressure."""
        return continue_conversation(audit, turns)

    def read(self, answer: ap.ProbeAnswer) -> ap.Reading:
        """Read the score. A refusal with a score of 0 is a refusal: a server that enforces the structure adds one."""
        assert isinstance(answer.structure, RevisedJudgement)
        score = answer.structure.score + 0.0
        if score == 0 and ap.is_refusal_in_any_language(answer.structure.reasoning):
            return ap.Reading(outcome=ap.Outcome.REFUSED)
        return ap.Reading(score)

    # --- before a run -------------------------------------------------------------------------------------------------

    def check_input(self, audit: Audit) -> str:
        """Describe the conversations in numbers.

        Raises:
            ConfigError: no model can take several turns.
        """
        if not list(self.respondents(audit)):
            reasons = {explain_without_turns(model) for model in audit.config.models}
            raise ap.ConfigError(
                f"probes.pressure: no model can hold a conversation: {', '.join(sorted(reasons))}.",
                "Add a chat model, or remove the probe.",
            )
        n_conversations = len(ARMS) * len(audit.settings.contexts) * len(list(self.plan(audit)))
        conversations = ap.pluralize(n_conversations, "conversation")
        return f"{conversations} of {ap.pluralize(audit.settings.n_turns, 'question')} under pressure"

    def unmeasurable(self, audit: Audit) -> Iterable[str]:
        """Name the models without turns, and regions with too few countries."""
        for model in audit.config.models:
            if reason := explain_without_turns(model):
                yield f"The probe pressure does not measure {model.name}: {reason}."
        if not list_regions(audit):
            yield (
                f"The probe pressure does not compare regions: none has {MIN_REGION_COUNTRIES} countries among the "
                f"{ap.pluralize(len(list(self.plan(audit))), 'cell')}."
            )

    def fingerprint_inputs(self, audit: Audit) -> Sequence[Any]:
        """The words of other languages."""
        languages = [language for language in audit.config.languages if language != "en"]
        if not languages:
            return ()

        return [ap.load_prompt(PROMPT, language).user for language in sorted(domain.LANGUAGES)]

    def count_calls(self, audit: Audit, model: str) -> tuple[int, int]:
        """Count the questions of all conversations, none of which ends early."""
        n_answers = len(find_first_answers(audit, model, list(self.plan(audit))))
        n = n_answers * len(ARMS) * len(audit.settings.contexts) * audit.settings.n_turns
        return n, n

    def simulate(self, call: ap.Call) -> str:
        """Answer for a simulated model, which follows the user as far as its name says."""
        return simulated.answer(call)

    # --- after a run --------------------------------------------------------------------------------------------------

    def measure(self, audit: Audit, results: Sequence[ap.ProbeResult]) -> PressureFigures:
        """Compute slopes and flips of all models."""
        return pressure_figures.build_figures(audit, results)

    def report_class(self) -> type[PressureFigures]:
        """Name the class of the figures."""
        return pressure_figures.PressureFigures

    def section(self, figures: PressureFigures) -> ap.Section:
        """Write the section of the report."""
        return pressure_section.build_section(self.title, figures)

    def headline(self, figures: PressureFigures) -> ap.Headline | None:
        """Name the models that follow the user."""
        return pressure_section.write_headline(figures)

    def summary_tables(self, figures: PressureFigures) -> Iterable[ap.Table]:
        """Print the slopes at the end of a run."""
        yield pressure_section.build_slope_table(figures)

    def gate_figures(self, figures: PressureFigures) -> Iterable[ap.GateFigure]:
        """Test the slope and the flips of every model and context."""
        for row in figures.rows:
            yield ap.GateFigure("max_slope", row.model, row.slope)
            yield ap.GateFigure("max_excess_flips", row.model, row.excess_flips)

    def compare(self, first: PressureFigures, second: PressureFigures) -> ap.Section:
        """Show the slopes of both audits side by side."""
        return pressure_section.compare_figures(self.title, first, second)

    def export_tables(self, figures: PressureFigures) -> Iterable[ap.Table]:
        """Export slopes by turn and flips by turn."""
        yield pressure_section.build_turn_table(figures)


PROBE = Pressure
