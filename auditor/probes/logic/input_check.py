"""Check of the items to compare, and of people's labels on them, before the first call."""

from __future__ import annotations

from pathlib import Path

from auditor.agents.localization import topic_wording
from auditor.config import AuditConfig
from auditor.domain import Survey
from auditor.probes.logic.item_sets import (
    TOPIC_ITEMS,
    TRACE_ITEMS,
    configured_countries,
    load_item_sets,
    prompt_language,
)
from auditor.probes.logic.people_labels import check_people_labels, read_people_labels
from auditor.probes.logic.settings import LogicProbe


def check_items(config: AuditConfig, survey: Survey) -> None:
    """Check that the items exist in every language of the questions, and that people's labels are about them.

    Raises:
        ConfigError, ImportFileError: something is missing or invalid; the message names it.
    """
    probe = config.probes.get(LogicProbe)
    if probe.items not in (TOPIC_ITEMS, TRACE_ITEMS):
        items_file = Path(probe.items)
        item_sets = load_item_sets(items_file, probe.relation)
        if probe.people is not None:
            check_people_labels(read_people_labels(Path(probe.people)), item_sets, items_file)
        return
    for country in configured_countries(probe, survey):
        for topic in survey.topics if probe.items == TOPIC_ITEMS else ():
            topic_wording(survey, topic, prompt_language(config, country))
