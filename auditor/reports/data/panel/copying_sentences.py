"""Sentences of the certificate on judges that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.judge_copying import LABELS_FOR_SHARED_ERRORS, MIN_LABELS, MIN_SHARED_TRACES
from auditor.reports.data.panel.copying_schema import CopyingReport, JudgePairRow
from auditor.reports.number_format import describe_estimate, describe_interval, format_number, pluralize

MAX_NAMED_PAIRS = 6
"""Pairs that a sentence names; more would be unreadable."""


def describe_copying(copying: CopyingReport, *, is_task: bool) -> Iterator[str]:
    """Yield sentences on pairs whose errors are alike, on copies, and on the effective number of judges.

    Args:
        is_task: whether the audit is of a task, into whose answers no faults are planted.
    """
    alike = [pair for pair in copying.pairs if pair.verdict == "errors more alike"]
    if alike:
        labels = pluralize(copying.labels, "labelled trace")
        yield (
            "The errors of some judges are more alike than those of other pairs: "
            f"{_join_pairs(alike, with_excess=True)}. This was tested on {labels} ({copying.label_source}); the 95% "
            "CIs hold for all pairs jointly. Partial copying cannot be told from shared training. Each judge keeps its "
            "vote."
        )
    copies = [pair for pair in copying.pairs if pair.verdict == "copies"]
    if copies:
        yield (
            f"Copies: {_join_pairs(copies, with_excess=False)} give equal verdicts on at least 99% of "
            f"{MIN_SHARED_TRACES} or more traces. Judges that are both always right look the same."
        )
    if (alpha := copying.alpha_without_alike) is not None:
        yield (
            f"With only one judge of each such group, the panel’s {describe_estimate('Krippendorff’s alpha', alpha)}: "
            "judges that depend on each other agree without being independent evidence."
        )
    if copying.groups:
        groups = "; ".join(_join_names(group) for group in copying.groups)
        yield (
            f"Judges that share one vote: {groups}. This applies to all voting rules except the majority and "
            "configured weights. Stored outcomes of conflicts are not changed."
        )
    yield _describe_effective_number(copying, is_task)
    shared_models = [pair for pair in copying.pairs if pair.same_model and pair.verdict != "copies"]
    if shared_models:
        yield (
            f"{_join_pairs(shared_models, with_excess=False)} are the same model. Only labelled traces can show "
            "whether their errors are independent."
        )


def describe_copied_outcomes(copying: CopyingReport) -> Iterator[str]:
    """Yield a sentence on majorities and conflicts that copies settle alone; nothing where there is none."""
    n_traces, n_conflicts = copying.traces_settled_by_copies, copying.conflicts_settled_by_copies
    if n_traces or n_conflicts:
        conflicts = "" if n_conflicts is None else f" and {pluralize(n_conflicts, 'conflict')}"
        yield (
            f"Copies outvote the other judges on {pluralize(n_traces, 'trace')}{conflicts}. With one vote for each "
            "group, the outcome would be open or the opposite."
        )


def _describe_effective_number(copying: CopyingReport, is_task: bool) -> str:
    """Write the effective number of judges, or why it is not known."""
    number = copying.effective_judges
    if number.value is None:
        advice = (
            ""
            if is_task
            else f" `auditor experiment planted --sample {LABELS_FOR_SHARED_ERRORS // 4}` makes labelled traces."
        )
        cause = f": {number.reason}" if copying.label_source else " without labelled traces"
        return (
            f"The effective number of judges, and whether their errors are alike, are not known{cause}. Verdicts alone "
            f"cannot show this.{advice}"
        )
    few = (
        f" With fewer than {LABELS_FOR_SHARED_ERRORS} labels, a judge that shares 30% of its verdicts may be missed."
        if MIN_LABELS <= number.n < LABELS_FOR_SHARED_ERRORS
        else ""
    )
    return (
        f"As votes are counted, {pluralize(len(copying.effective_of), 'judge')} of the panel are worth "
        f"{format_number(number.value, 1)} judges with independent errors ({describe_interval(number, 1)}). This was "
        f"estimated on {pluralize(number.n, 'labelled trace')} ({copying.label_source}).{few}"
    )


def _join_pairs(pairs: list[JudgePairRow], *, with_excess: bool) -> str:
    """Name pairs, with the excess of their error correlation where asked for."""
    texts = [
        f"{pair.first} and {pair.second}"
        + (f" ({describe_estimate('excess correlation', pair.excess)})" if with_excess else "")
        for pair in pairs[:MAX_NAMED_PAIRS]
    ]
    if len(pairs) > MAX_NAMED_PAIRS:
        texts.append(f"{len(pairs) - MAX_NAMED_PAIRS} more pairs")
    return "; ".join(texts)


def _join_names(names: list[str]) -> str:
    """Join names, such as "a, b and c"."""
    return f"{', '.join(names[:-1])} and {names[-1]}"
