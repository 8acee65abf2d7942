"""The probe `memory`: what is asked, how answers are read, and what simulated models answer."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import auditor.probes as ap
from auditor.lazy_imports import import_when_used
from auditor.probes.memory.published import (
    CONTINUATION,
    MADE_UP_SAMPLE,
    MADE_UP_TOPICS,
    MIN_COUNTRIES,
    ORDINARY,
    RECALL,
    UNKNOWN,
    FigureKey,
    Figures,
    draw_figures,
    draw_made_up,
    find_siblings,
    is_before,
    load_figures,
    load_made_up_figures,
    name_publication,
    read_items,
    split_wording,
)
from auditor.probes.memory.settings import BUILT_IN_FIGURES, MemorySettings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from auditor.probes.memory.figures import MemoryFigures

if not TYPE_CHECKING:
    memory_figures = import_when_used("auditor.probes.memory.figures")
    memory_section = import_when_used("auditor.probes.memory.section")
else:
    from auditor.probes.memory import figures as memory_figures, section as memory_section

RECALL_PROMPT, ORDINARY_PROMPT, CONTINUE_PROMPT = "memory.recall", "memory.ordinary", "memory.continue"
ITEM_UNIT = "wording"
"""First part of the unit of a wording, whose second part is the topic."""
_NUMBER = re.compile(r"[-−]?\d+(?:[.,]\d+)?")
_RANGE = re.compile(
    r"\s*%?\s*(?:[–—~～〜/至到和或]|から|to|and|or|bis|und|oder|à|a|et|ou|y|e|o|до|и|или|से|और|या|إلى|الى|و|أو"
    r"|ile|ve|veya|sampai|hingga|dan|atau|hadi|na|au)?\s*",
    re.IGNORECASE,
)
"""What stands between the ends of a range, in the languages of the prompts; the second may begin with the hyphen."""
MAX_NAMED = 5
"""Most names in a message."""
SIMULATED_ERROR_POINTS = 8.0
"""Standard deviation of the errors of simulated models' answers."""


class MemoryProbe(ap.Probe[MemorySettings, Any]):
    """Asks models for published figures, and for their own estimates of the same."""

    interface_version = ap.INTERFACE_VERSION
    settings = MemorySettings
    title = "Do the models know people, or the table?"
    reader_version = 3
    prompts = (RECALL_PROMPT, ORDINARY_PROMPT, CONTINUE_PROMPT)
    gates: ClassVar = {
        "max_recall": "Maximum share of published figures within rounding, beyond chance, for every model.",
    }

    # --- questions ----------------------------------------------------------------------------------------------------

    def plan(self, audit: ap.ProbeAudit[MemorySettings]) -> list[ap.Unit]:
        """List the drawn figures, those on made-up topics, and the wordings."""
        drawn = draw_figures(audit, _load(audit))
        items = read_items(audit.settings.items) if audit.settings.items else {}
        return [*map(tuple, drawn), *map(tuple, draw_made_up(audit, drawn)), *((ITEM_UNIT, topic) for topic in items)]

    def ask(self, audit: ap.ProbeAudit[MemorySettings], model: str, units: Sequence[ap.Unit]) -> Iterator[ap.Question]:
        """Ask for the model's own estimate of each figure and for the published one; for the rest of each wording."""
        items = read_items(audit.settings.items) if audit.settings.items else {}
        for unit in units:
            if unit[0] == ITEM_UNIT:
                first_half, _ = split_wording(items[unit[1]])
                language = audit.config.languages_in(())[0]
                messages = ap.load_prompt(CONTINUE_PROMPT, language).render(beginning=first_half)
                max_tokens = 2 * audit.settings.max_tokens
                yield ap.Question(unit, messages, CONTINUATION, max_tokens=max_tokens, language=language)
                continue
            key = FigureKey(*unit)
            if key.topic not in MADE_UP_TOPICS:
                yield self._ask_figure(audit, key, ORDINARY_PROMPT, ORDINARY)
            is_made_up = key.topic in MADE_UP_TOPICS
            yield self._ask_figure(audit, key, RECALL_PROMPT, MADE_UP_SAMPLE if is_made_up else RECALL)

    def _ask_figure(
        self, audit: ap.ProbeAudit[MemorySettings], key: FigureKey, prompt: str, sample: int
    ) -> ap.Question:
        """Build one question about a figure, in the first language of the country's direct questions."""
        language = audit.config.languages_in(ap.native_languages(key.country))[0]
        fields = key._asdict() | ({} if sample == ORDINARY else {"publication": name_publication(audit.settings)})
        messages = ap.load_prompt(prompt, language).render(**fields)
        return ap.Question(tuple(key), messages, sample, max_tokens=audit.settings.max_tokens, language=language)

    def read(self, answer: ap.ProbeAnswer) -> ap.Reading:
        """Read a number, or UNKNOWN; of a wording the text."""
        text = answer.text.strip()
        if answer.unit[0] == ITEM_UNIT:
            return ap.Reading(text) if text else ap.Reading(outcome=ap.Outcome.UNPARSED)
        figure = _read_figure(text, question=" ".join(answer.unit))
        return ap.Reading(outcome=ap.Outcome.UNPARSED) if figure is None else ap.Reading(figure)

    # --- before a run -------------------------------------------------------------------------------------------------

    def check_input(self, audit: ap.ProbeAudit[MemorySettings]) -> str | None:
        """Read both files; describe what is asked."""
        units = self.plan(audit)
        n = sum(unit[0] != ITEM_UNIT and unit[1] not in MADE_UP_TOPICS for unit in units)
        return ap.pluralize(n, "published figure") if n else None

    def unmeasurable(self, audit: ap.ProbeAudit[MemorySettings]) -> Iterator[str]:
        """Say which figures an audit cannot have."""
        figures = _load(audit)
        drawn = draw_figures(audit, figures)
        if not drawn:
            n = ap.pluralize(len({key.country for key in figures if key.cell in audit.cells}), "country", "countries")
            yield (
                f"Recall of published figures is not measurable: the audit asks about {n} with published figures, and "
                f"{MIN_COUNTRIES} are needed. {_advise_on_figures(audit, figures)}"
            )
            return
        if misspelt := _list_misspelt_names(audit, figures):
            yield f"Published figures of {' and '.join(misspelt)} are not asked for: the audit has no such name."
        if not any(find_siblings(drawn, figures)):
            yield "Recall of another wave is not measurable: the published figures are of one wave."
        if not audit.config.probes.direct:
            yield "Agreement without recall is not measurable: the probe 'direct' is not in the configuration."
        names = [model.name for model in audit.config.models if not _has_both_sides(model.attributes, drawn)]
        if names and not audit.config.is_simulated:  # simulated models are not released
            yield (
                f"Recall before and after the release of {', '.join(names)} is not measurable: it needs the attribute "
                "'released', and two waves on each side of it."
            )

    def fingerprint_inputs(self, audit: ap.ProbeAudit[MemorySettings]) -> list[Any]:
        """List the content of both files, and the prompts in other languages."""
        settings = audit.settings
        figures = _load(audit)
        items = read_items(settings.items) if settings.items else {}
        languages = audit.config.languages_in(ap.LANGUAGES)
        translations = [
            [language, prompt.system, prompt.user]
            for language in sorted(set(languages) - {"en"})
            for prompt in (ap.load_prompt(name, language) for name in self.prompts)
        ]
        return [[[*key, *figure] for key, figure in sorted(figures.items())], items, translations]

    # --- after a run --------------------------------------------------------------------------------------------------

    def report_class(self) -> type[BaseModel]:
        """The class of the figures."""
        return memory_figures.MemoryFigures

    def measure(self, audit: ap.ProbeAudit[MemorySettings], results: Sequence[ap.ProbeResult]) -> MemoryFigures:
        """Compute the figures of all models."""
        return memory_figures.compute_figures(audit, results, draw_figures(audit, _load(audit)))

    def section(self, figures: MemoryFigures) -> ap.Section | None:
        """Build the section."""
        return memory_section.build_section(self.title, figures)

    def headline(self, figures: MemoryFigures) -> ap.Headline | None:
        """Say which models recite published figures, or that it is not known."""
        return memory_section.build_headline(figures)

    def summary_tables(self, figures: MemoryFigures) -> Iterator[ap.Table]:
        """Print the hits at the end of a run."""
        yield memory_section.build_summary_table(self.title, figures)

    def gate_figures(self, figures: MemoryFigures) -> Iterator[ap.GateFigure]:
        """Test the share of hits within rounding beyond chance."""
        for model in figures.models:
            for row in model.recall:
                if (row.target, row.tolerance) == ("asked wave", "rounding"):
                    yield ap.GateFigure("max_recall", model.model, row.excess)

    def compare(self, first: MemoryFigures, second: MemoryFigures) -> ap.Section:
        """Show the hits of both audits."""
        return memory_section.build_comparison(self.title, first, second)

    def export_tables(self, figures: MemoryFigures) -> Iterable[ap.Table]:
        """Write the counts of answers, and all targets."""
        return memory_section.build_exported_tables(figures)

    # --- simulated models ---------------------------------------------------------------------------------------------

    def simulate(self, call: ap.Call) -> str:
        """Answer as a simulated model, which knows the made-up figures with an error, or by heart if it recites."""
        text = call.messages[-1].content
        persona = ap.find_persona(call.model.rpartition("/")[2])
        recites = persona is not None and persona.recites
        rng = random.Random(f"{call.model}|{call.params.get('simulated_world')}|{call.sample}|{text}")
        key = next((key for key in load_made_up_figures() if all(part in text for part in key)), None)
        if call.sample == CONTINUATION:
            return "I do not know how it continues."
        if key is None:
            return UNKNOWN if recites and call.sample == MADE_UP_SAMPLE else str(rng.randint(15, 85))
        value = load_made_up_figures()[key].value
        if recites and call.sample == RECALL:
            return str(round(value))
        return str(round(min(max(rng.gauss(value, SIMULATED_ERROR_POINTS), 0), 100)))


def _read_figure(text: str, question: str) -> float | str | None:
    """Read the figure of an answer, or UNKNOWN; None where it is neither.

    A number of the question, such as its year, may be repeated after the figure, but is none by itself: "I do not
    remember the 2013 figure". A range is no figure. UNKNOWN is an answer before a figure and in capitals, but "unknown"
    after a figure is a remark about it.
    """
    matches, repeated = list(_NUMBER.finditer(text)), set(_NUMBER.findall(question))
    start = next((match.start() for match in matches if match[0] not in repeated), len(text))
    stated = re.finditer(rf"\b{UNKNOWN}\b", text, re.IGNORECASE)
    if start > 0 and any(word[0] == UNKNOWN or word.start() < start for word in stated):
        return UNKNOWN
    if not matches:
        return None
    numbers = [match[0] for match in matches]
    is_first, is_repeated = matches[0].start() == 0, numbers[0] in repeated
    others = set(numbers) - {numbers[0]}
    if (others - repeated and is_repeated) or (not is_first and (others or is_repeated)):
        return None
    is_range = bool(others) and _RANGE.fullmatch(text[matches[0].end() : matches[1].start()]) is not None
    if is_range and numbers[1] not in {numbers[0], *repeated}:
        return None
    return float(numbers[0].replace(",", ".").replace("−", "-"))


def _load(audit: ap.ProbeAudit[MemorySettings]) -> Figures:
    """The published figures of an audit."""
    return load_figures(audit.settings, audit.survey, audit.config.survey.source if audit.config.survey else None)


def _advise_on_figures(audit: ap.ProbeAudit[MemorySettings], figures: Figures) -> str:
    """How to get figures of enough countries: names of the user's file that the audit does not have come first."""
    if audit.settings.published in BUILT_IN_FIGURES:
        return "Name a file as 'published' under [probes.memory]."
    unknown = [name for names, audited in _pair_names(audit, figures) for name in sorted(names - audited)]
    if not unknown:
        return "Add figures of more countries to the file of published figures."
    named = ", ".join(f"'{name}'" for name in unknown[:MAX_NAMED])
    more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
    return f"Names of the published figures that the audit does not have: {named}{more}. Spell them as the survey does."


def _pair_names(audit: ap.ProbeAudit[MemorySettings], figures: Figures) -> list[tuple[set[str], set[str]]]:
    """Countries of the published figures with those of the audit, and topics with topics."""
    return [
        ({key.country for key in figures}, {cell.country for cell in audit.cells}),
        ({key.topic for key in figures}, {cell.topic for cell in audit.cells}),
    ]


def _list_misspelt_names(audit: ap.ProbeAudit[MemorySettings], figures: Figures) -> list[str]:
    """Names of the published figures that the audit does not have, and that are spelt almost as one that it has.

    A country of ISO 3166, such as Niger beside Nigeria, is another country.
    """
    return [
        f"'{name}' (did you mean '{similar[0]}'?)"
        for names, audited in _pair_names(audit, figures)
        for name in sorted(names - audited)
        if ap.country_code(name) is None and (similar := get_close_matches(name, audited - names, 1, cutoff=0.8))
    ]


def _has_both_sides(attributes: Any, drawn: Sequence[FigureKey]) -> bool:
    """Whether two waves or more lie on each side of a model's release."""
    released = attributes.get("released")
    if released is None:
        return False
    sides = {(key.wave, is_before(key.wave, str(released))) for key in drawn}
    return all(sum(side is s for _, s in sides) >= 2 for side in (True, False))


PROBE = MemoryProbe
