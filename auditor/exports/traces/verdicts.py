"""The verdicts on an answer as a reader may see them: with their judges, or without while conflicts are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from auditor.config import AuditConfig
from auditor.domain import Ruling, Verdict
from auditor.reports.data.examples import HIDDEN_NAME, hide_names
from auditor.reports.data.traces.schema import TraceVerdict

NUMBERED_JUDGE = "judge {}"


def describe_verdicts(verdicts: Sequence[Verdict]) -> list[TraceVerdict]:
    """Convert verdicts, with the names of their judges, in their order."""
    return [_convert(verdict, verdict.judge, verdict.justification) for verdict in verdicts]


def describe_anonymous_verdicts(verdicts: Sequence[Verdict], mask: Callable[[str], str]) -> list[TraceVerdict]:
    """Convert verdicts without their judges: numbered in an order that depends only on what the verdicts say.

    Args:
        mask: replaces the names of models and their makers in a justification.
    """
    unnamed = [_convert(verdict, "", verdict.justification and mask(verdict.justification)) for verdict in verdicts]
    unnamed.sort(key=lambda verdict: (verdict.valid is None, not verdict.valid, verdict.model_dump_json()))
    return [
        verdict.model_copy(update={"judge": NUMBERED_JUDGE.format(number)}) for number, verdict in enumerate(unnamed, 1)
    ]


def make_name_mask(config: AuditConfig | None, names: Sequence[str]) -> Callable[[str], str]:
    """A function that replaces the names of an audit's models, of well-known models and of makers in a text.

    Args:
        names: names of the audit's models and judges.
    """
    from auditor.agents.blinding import AUTHOR_LABEL, author_names, mask_authors  # loads word lists

    sections = config.models_by_name.values() if config else ()
    model_ids = [(section.name, section.model) for section in sections]
    identifying_names = [*author_names(model_ids), *(part for _, model in model_ids for part in model.split("/"))]

    def mask(text: str) -> str:
        """Replace the names in one text by one label."""
        return mask_authors(hide_names(text, names), identifying_names).replace(AUTHOR_LABEL, HIDDEN_NAME)

    return mask


def _convert(verdict: Verdict, judge: str, justification: str | None) -> TraceVerdict:
    """Convert one verdict."""
    return TraceVerdict(
        judge=judge,
        outcome=verdict.outcome.value,
        valid=None if verdict.ruling is None else verdict.ruling is Ruling.VALID,
        aspects=dict(verdict.aspects),
        confidence=verdict.confidence,
        justification=justification,
        shortened=verdict.shortened,
    )
