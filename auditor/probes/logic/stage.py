"""Stage of the probe `logic`: store item sets, compare their pairs in batches; comparisons by simulated models."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.agents.call_runner import repeat_unusable, run_calls
from auditor.agents.probe_stage import ProbeStage
from auditor.agents.run_context import RunContext
from auditor.agents.stages import record_stage, wait_for_answers
from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Cell, LogprobMeasure
from auditor.models.simulated import World, answer_option_logprobs, find_options, model_name
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparisons import LOGIC_PURPOSE, Comparison, ItemSet
from auditor.probes.logic.item_sets import TRACE_ITEMS, build_item_sets, list_excluded_items
from auditor.probes.logic.people_labels import LabelledPair, find_people_decision, load_people_labels
from auditor.probes.logic.questions import (
    BinaryPreference,
    ItemPair,
    LogicQuestion,
    Preference,
    ReasonedBinaryPreference,
    ReasonedPreference,
    build_comparison_call,
    parse_comparison,
    plan_pairs,
    questions_about,
)
from auditor.probes.logic.settings import LogicProbe
from auditor.storage.records import delete_unplanned, save_records

TIE_DIFFERENCE = 0.01
"""Items whose scores differ by less are a tie."""
REASON = "The two were weighed by how often people justify them."
BINARY_SCHEMAS = (BinaryPreference.__name__, ReasonedBinaryPreference.__name__)
REASONED_SCHEMAS = (ReasonedPreference.__name__, ReasonedBinaryPreference.__name__)
SCHEMAS = {Preference.__name__, *BINARY_SCHEMAS, *REASONED_SCHEMAS}
_NEGATED_QUESTION = re.compile(r"\b(?:less|worse|later)\b")


def answer_comparison(world: World, call: Call) -> str | None:
    """Compare two items, as a structure or by log-probabilities; None for a call of another kind."""
    if call.purpose is LOGIC_PURPOSE and call.measure is LogprobMeasure.CHOICE:
        return answer_option_logprobs(_measure_preference(world, call))
    if call.schema not in SCHEMAS:
        return None
    difference = _measure_preference(world, call)
    if call.schema in BINARY_SCHEMAS:
        answer = "A" if difference >= 0 else "B"
    else:
        answer = "TIE" if abs(difference) < TIE_DIFFERENCE else "A" if difference > 0 else "B"
    return json.dumps(
        {"reasoning": REASON, "answer": answer} if call.schema in REASONED_SCHEMAS else {"answer": answer}
    )


def _measure_preference(world: World, call: Call) -> float:
    """By how much a model prefers item A to item B of a comparison, in score units, as the question asks."""
    option_a, remainder = find_options(call.messages[-1].content)
    option_b, _, question = remainder.rpartition("\n")
    country = world.find_cell(call.messages[-1].content).country
    score_a, score_b = (
        world.score(model_name(call), Cell(country, world.find_cell(option).topic), call.sample)
        for option in (option_a, option_b)
    )
    return score_b - score_a if _NEGATED_QUESTION.search(question) else score_a - score_b


PAIRS_PER_BATCH = 32
"""Pairs in one parallel branch; bounds its memory."""
STAGE = "logic"


class LogicPlan(NamedTuple):
    """The item sets as stored, and their pairs to compare, without those that have an excluded item."""

    sets: Sequence[ItemSet]
    pairs: Sequence[ItemPair]


def build_logic_stage() -> ProbeStage:
    """Build the stage of the probe."""
    return ProbeStage(STAGE, store_item_sets, compare, PAIRS_PER_BATCH)


async def store_item_sets(context: RunContext) -> int:
    """Store the item sets, and count their pairs."""
    probe = context.config.probes.get(LogicProbe)
    if probe.items == TRACE_ITEMS:
        await wait_for_answers(context)
    await record_stage(context, STAGE)
    sets = await asyncio.to_thread(build_item_sets, context, probe)
    await asyncio.to_thread(comparison_rows.replace_item_sets, context.db, context.audit_id, sets)
    stored_sets = await asyncio.to_thread(comparison_rows.load_item_sets, context.db, context.audit_id)
    pairs = plan_pairs(stored_sets, probe, context.config.seed)
    planned = _list_keys(context.config, probe, stored_sets, pairs)
    await asyncio.to_thread(delete_unplanned, context.db, context.audit_id, Comparison, planned)
    excluded = await asyncio.to_thread(list_excluded_items, context, probe)
    asked = [
        pair
        for pair in pairs
        if excluded.isdisjoint(
            (stored_sets[pair.set_index].context, stored_sets[pair.set_index].items[item].id)
            for item in (pair.first, pair.second)
        )
    ]
    context.probe_plans[STAGE] = LogicPlan(stored_sets, asked)
    return len(asked)


def _list_keys(
    config: AuditConfig, probe: LogicProbe, sets: Sequence[ItemSet], pairs: Sequence[ItemPair]
) -> Iterator[tuple[object, ...]]:
    """Yield the key of each comparison of some pairs, in the order of its columns.

    Where items are traces, answers that came since change which questions are asked, and the answers to others would
    count beside them.
    """
    for pair in pairs:
        for question in questions_about(pair, probe):
            names = _name_items(sets[question.set_index], question)
            for judge in config.models_by_name:
                yield (judge, *names, question.relation.value, question.paraphrase, question.sample)


async def compare(context: RunContext, start: int, stop: int) -> None:
    """Ask every model all questions about the pairs of the range, and store the answers."""
    config, probe = context.config, context.config.probes.get(LogicProbe)
    plan: LogicPlan = context.probe_plans[STAGE]
    requests = [
        (build_comparison_call(config, probe, judge, plan.sets[pair.set_index], question), judge.name, question)
        for judge in config.models_by_name.values()
        for pair in plan.pairs[start:stop]
        for question in questions_about(pair, probe)
    ]
    labels = await asyncio.to_thread(load_people_labels, probe.people)
    answers = await run_calls(context, STAGE, [call for call, _, _ in requests])
    asked = [request for request in requests if request[0].key in answers]

    def read(position: int, answer: Answer) -> Comparison:
        """Parse an answer to the call at a position of `asked`."""
        call, judge, question = asked[position]
        item_set = plan.sets[question.set_index]
        people = find_people_decision(labels, _name_items(item_set, question))
        return parse_comparison(answer, probe, judge, item_set, question, people, call.request_text)

    first_comparisons = [(call, read(position, answers[call.key])) for position, (call, _, _) in enumerate(asked)]
    new_comparisons = await repeat_unusable(context, STAGE, first_comparisons, read)
    await asyncio.to_thread(save_records, context.db, context.audit_id, new_comparisons)


def _name_items(item_set: ItemSet, question: LogicQuestion) -> LabelledPair:
    """Ids of the two items of a question, in the order shown."""
    return LabelledPair(item_set.context, item_set.items[question.first].id, item_set.items[question.second].id)
