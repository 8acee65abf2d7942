"""The calls that an audit plans, by model and stage, without sending any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from auditor.agents.call_builders import build_direct_call, build_review_call, plan_stand_ins
from auditor.agents.localization import first_samples, samples_per_cell
from auditor.agents.probe_questions import build_probe_call, load_question
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import EMBEDDED, REPLAY, SIMULATED, AuditConfig, ModelSection
from auditor.config.installed_probes import load_probe
from auditor.config.probe_section import BuiltInProbe
from auditor.domain import Call, Cell, LogprobMeasure, Outcome, Purpose, Survey, Trace
from auditor.metrics.intervals.estimate import NORMAL_QUANTILE
from auditor.metrics.judges.votes import min_majority
from auditor.metrics.people.savings import FIRST_INTERIM_LOOK
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, CapabilityRegistry, MemoryCapabilityStore
from auditor.models.logprobs import supported_measures
from auditor.probe_interface import ProbeAudit, Unit
from auditor.prompts.language_data import load_stand_in_trace
from auditor.reports.data.cost import ForecastRange
from auditor.storage import audits
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities
from auditor.storage.database import Database
from auditor.storage.records import load_records
from auditor.surveys.countries import native_languages

USABLE_TRACE_SHARES = (0.6, 0.95, 1.0)
"""Share of traces that can be parsed and are reviewed by judges: at least, expected, at most."""


def count_direct_calls(config: AuditConfig, cells: Sequence[Cell]) -> ForecastRange:
    """Number of direct questions to one model: one per sample of each cell.

    Low is the number asked in any case: early stopping may end a cell after `guaranteed_samples`. High is the maximum,
    and expected the middle between the two. All are multiplied by the share of cells that are asked at all.
    """
    probe = config.direct
    n_samples = sum(samples_per_cell(config, cell.country) for cell in cells)
    min_share = probe.guaranteed_samples / probe.samples
    return share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
        min_share * n_samples, (1 + min_share) / 2 * n_samples, n_samples
    )


def share_of_cells_asked(config: AuditConfig, n_cells: int) -> ForecastRange:
    """Share of the cells that are asked until Fisher's 95% interval of r is as narrow as `target_width`.

    It is 1 without a target.

    Low is for r = 0.9, expected for r = 0.6, high is all cells. The number of cells n follows from the width of the
    Fisher interval, about 2 z (1 - r^2) / sqrt(n - 3). At least the cells before the first interim look are asked.
    """
    width = config.direct.target_width
    if width is None or not n_cells:
        return ForecastRange.from_bounds(1)
    needed = [3 + (2 * NORMAL_QUANTILE * (1 - r * r) / width) ** 2 for r in (0.9, 0.6)]
    low, expected = (min(1.0, max(FIRST_INTERIM_LOOK, n) / n_cells) for n in needed)
    return ForecastRange.from_bounds(low, expected, 1)


def count_reviewed_traces(config: AuditConfig, cells: Sequence[Cell]) -> int:
    """Number of one model's traces that judges review if all can be parsed.

    At most `review.traces` per cell, and none of the samples that are taken only if early stopping does not end a cell.
    """
    limit = config.probes.review.traces
    guaranteed_samples = [config.guaranteed_samples_per_cell(native_languages(cell.country)) for cell in cells]
    return sum(n_samples if limit == "all" else min(n_samples, limit) for n_samples in guaranteed_samples)


def count_judge_calls(config: AuditConfig, n_traces: int, author: str, assigned_share: float) -> ForecastRange:
    """Number of calls to one judge about one author's traces.

    High counts each call twice: a judge may be asked again for a shorter justification.

    Args:
        config: the audit's configuration.
        n_traces: number of the author's traces that are reviewed if all can be parsed.
        author: name of the model that wrote the traces.
        assigned_share: share of these traces that are assigned to the judge, in [0, 1].
    """
    low, expected, high = (share * assigned_share * n_traces for share in USABLE_TRACE_SHARES)
    # An adaptive panel asks at least a majority of its judges, at most all: the middle is expected.
    if not config.panel.adaptive:
        return ForecastRange.from_bounds(low, expected, 2 * high)
    panel_size = config.panel_size(author)
    min_share = min_majority(panel_size) / panel_size
    return ForecastRange.from_bounds(min_share * low, (1 + min_share) / 2 * expected, 2 * high)


T = TypeVar("T")
MAX_EXAMPLES = 40
"""Maximum number of cells, questions or pairs whose prompts are built, at equal distances among all."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of one model at one stage, for an estimate of their tokens and cost.

    Attributes:
        model: the model's section of the configuration.
        purpose: what the calls are for.
        calls: number of calls: low, expected, high.
        examples: some of the calls, from whose prompts the mean size is computed.
        expected_words: expected number of words in the prose of an answer.
    """

    model: ModelSection
    purpose: Purpose
    calls: ForecastRange
    examples: Sequence[Call]
    expected_words: float


def sample_evenly(items: Sequence[T], max_items: int = MAX_EXAMPLES) -> Sequence[T]:
    """At most `max_items` items, such as cells or questions, at equal distances."""
    return items[:: max(1, len(items) // max_items)][:max_items]


def merge_planned_calls(planned_calls: Iterable[PlannedCalls]) -> list[PlannedCalls]:
    """Add up the calls of one model for one purpose, such as answers for an audit and for an experiment on it."""
    merged: dict[tuple[str, Purpose], PlannedCalls] = {}
    for planned in planned_calls:
        key = (planned.model.name, planned.purpose)
        if earlier := merged.get(key):
            calls, examples = earlier.calls + planned.calls, [*earlier.examples, *planned.examples]
            planned = replace(earlier, calls=calls, examples=examples)
        merged[key] = planned
    return list(merged.values())


def discovery_check(db: Database | None, audit_name: str) -> Callable[[Call], bool]:
    """A function that says whether it is not known yet what the server of a call's model accepts.

    Args:
        db: database with the audit's capabilities; without it, nothing is known.
        audit_name: the audit.
    """
    audit = audits.find_audit(db, audit_name) if db else None
    history = load_records(db, audit.id, StoredCapability) if db and audit else []
    stored = {key: entry.capability for key, entry in current_capabilities(history).items()}
    return CapabilityRegistry(MemoryCapabilityStore(stored)).needs_discovery


def plan_preflight_calls(
    config: AuditConfig, survey: Survey, cell: Cell, needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the additional calls to each model over the network; none if it is known what its server accepts.

    An audited model's first planned call is no additional one, and shows how it judges if it is structured. How many
    requests discovery takes is not known before: the high end is the most that it may take.
    """
    direct_calls = {model.name: build_direct_call(config, survey, model, cell, 0) for model in config.models}
    stand_ins = {call.name: call for call in plan_stand_ins(config, survey, cell)}
    shown_forms = {call.capability_key for call in direct_calls.values() if call.schema is not None}
    for name, model in config.models_by_name.items():
        if model.provider in (EMBEDDED, REPLAY, SIMULATED):
            continue
        planned_call, stand_in = direct_calls.get(name), stand_ins.get(name)
        n_stand_ins = int(
            stand_in is not None and stand_in.capability_key not in shown_forms and needs_discovery(stand_in)
        )
        is_unknown = n_stand_ins or (planned_call is not None and needs_discovery(planned_call))
        n_planned = int(planned_call is not None)
        most = MAX_DISCOVERY_REQUESTS - (n_planned and not n_stand_ins) if is_unknown else 0
        yield PlannedCalls(
            model,
            Purpose.PREFLIGHT,
            ForecastRange.from_bounds(n_stand_ins, n_stand_ins, most),
            [call for call in (planned_call, stand_in) if call is not None],
            config.direct.max_words if stand_in is None else 0.7 * config.probes.review.max_words,
        )


MAX_EXAMPLE_TRACES = 5
"""Cells with a trace whose prompts are built."""
GUESS_ANSWER_WORDS = 10
"""Words of a judge's guess, which names three lines by number."""


def plan_review_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls of the judging models: each judge's verdicts and guesses, and the rewriter's restatements.

    A guess is of a trace's country, topic and author, to test blinding; a restatement is the trace in neutral words.
    Each author's traces are shared out equally among its judges, `panel_size` of them per trace. An adaptive panel
    asks between a majority and all of its judges.
    """
    verdicts_by_judge = _count_verdicts(config, cells)
    for judge in config.judge_models:
        if judge.name not in verdicts_by_judge or judge.verdicts is not None:
            continue
        # The prompt of a verdict also stands for that of a guess.
        examples = _build_examples(config, survey, cells, judge)
        calls = verdicts_by_judge[judge.name]
        if config.probes.review.rewrite == "neutral" and judge.name != config.probes.review.rewriter:
            calls += calls  # each trace once more, restated
        yield PlannedCalls(judge, Purpose.REVIEW, calls, examples, 0.7 * config.probes.review.max_words)
        if config.probes.review.guess:
            judges_by_author = {
                author.name: [panel_judge.name for panel_judge in config.judges_of(author.name)]
                for author in config.models
            }
            n_assigned_authors = sum(
                config.panel_size(author) / len(judge_names)
                for author, judge_names in judges_by_author.items()
                if judge.name in judge_names
            )
            guesses = share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
                n_assigned_authors * len(cells)
            )
            yield PlannedCalls(judge, Purpose.GUESS, guesses, examples, GUESS_ANSWER_WORDS)
    if config.probes.review.rewrite == "neutral":
        yield _plan_restatements(config, survey, cells)


def _count_verdicts(config: AuditConfig, cells: Sequence[Cell]) -> dict[str, ForecastRange]:
    """Number of verdicts by each judge that is asked for any."""
    share, traces = share_of_cells_asked(config, len(cells)), count_reviewed_traces(config, cells)
    verdicts_by_judge: dict[str, ForecastRange] = {}
    for author in config.models:
        judges = config.judges_of(author.name)
        for judge in judges:
            judge_share = config.panel_size(author.name) / len(judges)
            verdicts = share * count_judge_calls(config, traces, author.name, judge_share)
            verdicts_by_judge[judge.name] = verdicts_by_judge.get(judge.name, ForecastRange.from_bounds(0)) + verdicts
    return verdicts_by_judge


def _plan_restatements(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> PlannedCalls:
    """The restatements by the rewriter of all other models' traces; prompts of verdicts stand for theirs."""
    rewriter = config.model(config.probes.review.rewriter or "")
    n_authors = sum(author.name != rewriter.name for author in config.models)
    traces = count_reviewed_traces(config, cells)
    restatements = share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
        *(usable * n_authors * traces for usable in USABLE_TRACE_SHARES)
    )
    examples = _build_examples(config, survey, cells, rewriter)
    return PlannedCalls(rewriter, Purpose.REWRITE, restatements, examples, config.direct.max_words)


def _build_examples(config: AuditConfig, survey: Survey, cells: Sequence[Cell], judge: ModelSection) -> list[Call]:
    """Calls for verdicts on traces of as many words as are asked for, since no trace is written yet."""
    text = " ".join(["word"] * config.direct.max_words)
    traces = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in sample_evenly(cells)[:MAX_EXAMPLE_TRACES]]
    return [build_review_call(config, survey, judge, trace, text) for trace in traces]


EXPECTED_WORDS = 30
"""Words of an answer to a question of another package's probe, as long as none is recorded."""
MAX_LOGPROB_CELLS = 5
"""Cells whose calls for log-probabilities are built."""


def plan_calls(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the planned calls of all configured probes that can be estimated, one entry per model and stage."""
    if config.probes.direct and cells:
        calls = count_direct_calls(config, cells)
        for model in config.models:
            examples = [  # sample 0 of the first cell, 1 of the second: another audit may have fewer of all cells
                build_direct_call(config, survey, model, cell, sample + i % config.direct.guaranteed_samples)
                for i, cell in enumerate(sample_evenly(cells))
                for sample in first_samples(config, cell.country)
            ]
            yield PlannedCalls(model, Purpose.DIRECT, calls, examples, config.direct.max_words)
        yield from plan_preflight_calls(config, survey, cells[0], needs_discovery)
        yield from plan_review_calls(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _plan_logprob_calls(config, cells)
    for name in config.probes.with_stage:
        yield from plan_probe_calls(config, survey, name, cells)


def plan_probe_calls(
    config: AuditConfig, survey: Survey, name: str, cells: Sequence[Cell] = ()
) -> Iterator[PlannedCalls]:
    """Yield the calls of a probe with a stage of its own, of each model or judge that it asks.

    For a probe below the public interface, each planned answer to a direct question has the text of a stand-in.

    Args:
        cells: what a built-in probe with a plan of its own is asked about.
    """
    probe = load_probe(name)
    if isinstance(probe.probe, BuiltInProbe):
        settings = config.probes.stages[name]
        if settings.unestimated_reason is None:
            yield from probe.probe.plan_calls(ProbeAudit(settings, config, survey), cells)
        return
    samples = config.samples_by_cell(survey)
    stand_in = load_stand_in_trace().text

    def list_traces(model: str, cells: Iterable[Unit] | None = None) -> list[Trace]:
        """The planned answers of a model."""
        chosen = samples.keys() if cells is None else set(cells)
        return [
            Trace(model, cell, sample, Outcome.OK, 0.0, stand_in)
            for cell, n in samples.items()
            if cell in chosen
            for sample in range(n)
        ]

    audit = ProbeAudit(
        config.probes.plugins[name], config, survey, list_traces, load_question=partial(load_question, config, survey)
    )
    units = probe.plan(audit)
    for respondent in probe.respondents(audit):
        model = config.model(respondent)
        questions = probe.ask(audit, respondent, units)
        low, high = probe.count_calls(audit, respondent)
        examples = [build_probe_call(config, probe, model, question) for question in sample_evenly(questions)]
        yield PlannedCalls(model, probe.purpose, ForecastRange.from_bounds(low, high, high), examples, EXPECTED_WORDS)


def find_first_call(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Call | None:
    """A call that a run would send first, as far as it does not depend on answers; None if it plans none."""
    planned_calls = plan_calls(config, survey, cells, lambda call: False)
    return next((calls.examples[0] for calls in planned_calls if calls.examples), None)


def describe_unestimated_probes(config: AuditConfig) -> Iterator[str]:
    """Yield a notice for each configured probe that is not estimated, since it would otherwise look free."""
    for name, probe in config.probes.stages.items():
        if probe.unestimated_reason is not None:
            yield f"The probe '{name}' {probe.unestimated_reason}."


def _plan_logprob_calls(config: AuditConfig, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls for log-probabilities of each model.

    Which measure a model supports is only known after a call. The expected number of calls is that of the first
    measure it may support; low and high are the fewest and the most calls over all these measures.
    """
    probe = config.probes.logprob
    assert probe is not None
    for model in config.models:
        measures = list(supported_measures(model, probe.method))
        calls_by_measure = [_list_logprob_calls(model, cells[:1], measure) for measure in measures]
        counts = [len({call.key for call in calls}) * len(cells) for calls in calls_by_measure] or [0]
        yield PlannedCalls(
            model,
            Purpose.LOGPROB,
            ForecastRange.from_bounds(min(counts), counts[0], max(counts)),
            _list_logprob_calls(model, sample_evenly(cells, MAX_LOGPROB_CELLS), measures[0]) if measures else [],
            0,
        )


def _list_logprob_calls(model: ModelSection, cells: Sequence[Cell], measure: LogprobMeasure) -> list[Call]:
    """The calls for the log-probabilities of a model on cells."""
    return [call for cell in cells for pair in build_sentence_pairs(model, cell, measure) for call in pair.calls]
