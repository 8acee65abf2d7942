"""The probe `reasoning`: does the stated reasoning carry the score?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import auditor.probes as ap
from auditor.lazy_imports import import_when_used
from auditor.probes.reasoning.interventions import (
    PROMPT,
    Audit,
    ask_for_score,
    build_questions,
    count_questions,
    draw_cells,
    explain_unasked,
    find_cells_with_donor,
    find_form,
    is_restatement,
    plan_arms,
    read_restatement,
    read_score,
)
from auditor.probes.reasoning.settings import MIN_SAMPLES_FOR_SHARE, ReasoningSettings

if TYPE_CHECKING:
    from auditor.probes.reasoning.figures import ReasoningFigures

if not TYPE_CHECKING:
    reasoning_figures = import_when_used("auditor.probes.reasoning.figures")
    reasoning_section = import_when_used("auditor.probes.reasoning.section")
    simulated = import_when_used("auditor.probes.reasoning.simulated")
else:
    from auditor.probes.reasoning import figures as reasoning_figures, section as reasoning_section, simulated

MIN_COUNTRIES = 5


class Reasoning(ap.Probe[ReasoningSettings, "ReasoningFigures"]):
    """Changes of recorded chains of thought."""

    interface_version = 1
    settings = ReasoningSettings
    title = "Does the stated reasoning carry the score?"
    noun = "answer to given steps"
    reader_version = 3
    needs = ap.Needs.ALL_TRACES
    max_turns = 2
    prompts = (PROMPT,)
    gates: ClassVar = {
        "min_slope": "Minimum slope of every model's score on that of the answer whose norms it is given.",
        "min_area": "Minimum area over the curve of early answering, for every model.",
    }

    # --- what is asked ------------------------------------------------------------------------------------------------

    def plan(self, audit: Audit) -> Iterable[ap.Unit]:
        """Draw the cells by lot."""
        return [tuple(cell) for cell in draw_cells(audit)]

    def respondents(self, audit: Audit) -> Iterable[str]:
        """List the models that can be asked."""
        return [model for model in audit.models if explain_unasked(audit, model) is None]

    def ask(self, audit: Audit, model: str, units: Sequence[ap.Unit]) -> Iterable[ap.Question]:
        """Give the model its own steps, changed and unchanged."""
        for arm in plan_arms(audit, model, units):
            yield from build_questions(audit, model, arm)

    def ask_next(self, audit: Audit, turns: Sequence[ap.Turn]) -> ap.Question | None:
        """Give the model the steps that it restated."""
        return ask_for_score(audit, turns)

    def read(self, answer: ap.ProbeAnswer) -> ap.Reading:
        """Read the score; of an answer with restated steps, these."""
        if is_restatement(answer.unit, answer.turn):
            return read_restatement(answer)
        score = read_score(answer)
        return ap.Reading(outcome=ap.Outcome.UNPARSED) if score is None else ap.Reading(score)

    # --- before a run -------------------------------------------------------------------------------------------------

    def check_input(self, audit: Audit) -> str:
        """Describe the questions in numbers.

        Raises:
            ConfigError: no model can be asked.
        """
        if not list(self.respondents(audit)):
            reasons = {explain_unasked(audit, model) or "" for model in audit.models}
            raise ap.ConfigError(
                f"probes.reasoning: no model can be asked: {'; '.join(sorted(reasons))}.",
                "Add a chat model, set form = “notes”, or remove the probe.",
            )
        n_cells = len(list(self.plan(audit)))
        return f"{ap.pluralize(n_cells * count_questions(audit.settings), 'question')} with recorded steps"

    def unmeasurable(self, audit: Audit) -> Iterable[str]:
        """Name the models that are not asked or get notes, and figures that the audit is too small for."""
        for model in audit.models:
            if reason := explain_unasked(audit, model):
                yield f"The probe reasoning does not measure {model}: {reason}."
            elif find_form(audit, model) == "notes" and audit.settings.form == "auto":
                yield (
                    f"The probe reasoning gives {model} its steps as notes, since its provider does not continue the "
                    "beginning of an answer; this is another figure than with models that do."
                )
            if audit.hides_reasoning(model):
                yield f"{model} reasons before it answers: the probe reasoning changes only what it states."
        units = list(self.plan(audit))
        n_countries, n_topics = (len({unit[i] for unit in units}) for i in (0, 1))
        if min(n_countries, n_topics) < MIN_COUNTRIES:
            yield (
                f"The probe reasoning gives no intervals: they need at least {MIN_COUNTRIES} countries and "
                f"{MIN_COUNTRIES} topics, and there are {n_countries} and {n_topics}."
            )
        n_with_donor = len({*units} & {tuple(cell) for cell in find_cells_with_donor(audit)})
        if "norms" in audit.settings.interventions and 2 * n_with_donor < len(units):
            yield (
                f"The probe reasoning exchanges norms in few cells: in {len(units) - n_with_donor} of {len(units)}, "
                "people in no other country differ by 0.5, so a model that answers as they do has no donor; its norms "
                "are called wrong instead."
            )
        if audit.settings.samples < MIN_SAMPLES_FOR_SHARE and audit.settings.samples > 1:
            yield f"The share of cells that follow needs samples = {MIN_SAMPLES_FOR_SHARE} of the probe reasoning."

    def fingerprint_inputs(self, audit: Audit) -> Sequence[Any]:
        """The form of each model, and the words of other languages."""
        forms = sorted([model, find_form(audit, model)] for model in audit.models)
        languages = sorted(language for language in audit.config.languages if language != "en")
        return [*forms, *(ap.load_prompt(PROMPT, language).user for language in languages)]

    def count_calls(self, audit: Audit, model: str) -> tuple[int, int]:
        """Count the questions about all cells, if all have recorded reasoning."""
        n = len(list(self.plan(audit))) * count_questions(audit.settings)
        return n, n

    def simulate(self, call: ap.Call) -> str:
        """Answer for a simulated model, which follows the steps as far as its name says."""
        return simulated.answer(call)

    # --- after a run --------------------------------------------------------------------------------------------------

    def measure(self, audit: Audit, results: Sequence[ap.ProbeResult]) -> ReasoningFigures:
        """Compute the figures of all models."""
        return reasoning_figures.build_figures(audit, results)

    def report_class(self) -> type[ReasoningFigures]:
        """Name the class of the figures."""
        return reasoning_figures.ReasoningFigures

    def section(self, figures: ReasoningFigures) -> ap.Section:
        """Write the section of the report."""
        return reasoning_section.build_section(self.title, figures)

    def headline(self, figures: ReasoningFigures) -> ap.Headline | None:
        """Name the model whose score most clearly follows exchanged norms."""
        return reasoning_section.write_headline(figures)

    def summary_tables(self, figures: ReasoningFigures) -> Iterable[ap.Table]:
        """Print the slopes at the end of a run."""
        columns = [ap.Column("Model", "name"), ap.Column("Steps"), ap.Column("Slope (95% CI)", "estimate")]
        rows: list[list[str | ap.Estimate]] = [[row.model, row.form, row.slope] for row in figures.rows]
        yield ap.Table("reasoning", self.title, "", columns, rows)

    def gate_figures(self, figures: ReasoningFigures) -> Iterable[ap.GateFigure]:
        """Test the slope and the area over the curve of every model."""
        for row in figures.rows:
            yield ap.GateFigure("min_slope", row.model, row.slope)
            if row.area_over_curve is not None:
                yield ap.GateFigure("min_area", row.model, row.area_over_curve)

    def compare(self, first: ReasoningFigures, second: ReasoningFigures) -> ap.Section:
        """Show the slopes of both audits side by side."""
        return reasoning_section.compare_figures(self.title, first, second)

    def export_tables(self, figures: ReasoningFigures) -> Iterable[ap.Table]:
        """Export the answers and the tests of differences between cells."""
        counts = ("cells", "answers", "refused", "failed", "without_donor")
        columns = [
            *(ap.Column("model", "name"), ap.Column("form")),
            *(ap.Column(name, "number") for name in counts),
            ap.Column("cells_differ_p_value", "number", style="p_value"),
        ]
        rows = [
            [
                *(row.model, row.form, *(getattr(row, name) for name in counts)),
                None if row.following_share is None else row.following_share.adjusted_p_value,
            ]
            for row in figures.rows
        ]
        yield ap.Table("reasoning-cells", "Answers and differences between cells", "", columns, rows)


PROBE = Reasoning
"""The class of the probe."""
