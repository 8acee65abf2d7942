"""The small form of logic's tables: what its made-up sets can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.settings import LogicProbe
from auditor.replications.planning import ReplicationOptions, plan_audits
from auditor.replications.presets import load_paper

DATA = ("SummEval", "NovelEval", "CaTeRS")


@pytest.fixture(scope="module")
def probes() -> dict[str, LogicProbe]:
    """The probe of each audit of the small form."""
    audits = plan_audits(load_paper("logic"), ReplicationOptions(is_small=True))
    probes = {name: config.probes.find(LogicProbe) for name, config in audits.items()}
    return {name: probe for name, probe in probes.items() if probe is not None}


def list_sizes(probe: LogicProbe) -> list[int]:
    """Number of compared items of each set, before sets are drawn."""
    return [min(len(one.items), probe.max_items) for one in load_item_sets(Path(probe.items), probe.relation)]


def test_transitivity_can_fail_in_every_audit(probes: dict[str, LogicProbe]) -> None:
    """Subsets of five have a cycle only if their pairs are compared: all are, of at least five items."""
    for name in (*DATA, *(f"{name}-CoT" for name in DATA)):
        assert probes[name].max_pairs is None
        assert min(list_sizes(probes[name])) >= 5


def test_figure_9_has_sets_for_each_of_its_sizes(probes: dict[str, LogicProbe]) -> None:
    assert max(list_sizes(probes["SummEval"])) >= max(probes["SummEval"].k) == 8


def test_sets_of_one_data_set_differ_in_size(probes: dict[str, LogicProbe]) -> None:
    """So that means over sets differ from pooled figures."""
    assert len(set(list_sizes(probes["SummEval"]))) > 1
