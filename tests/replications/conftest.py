"""Fixtures: a finished replication of EvalMORAAL with simulated models."""

from __future__ import annotations

import json

import pytest

from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import load_measured_audits
from tests.support.replicated_audits import Experiment, replicate


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("replication")
    result = replicate(folder, "--json")
    assert result.returncode == 0, result.stderr
    return Experiment(folder, json.loads(result.stdout))


@pytest.fixture(scope="session")
def measured(experiment: Experiment) -> list[MeasuredAudit]:
    return load_measured_audits(experiment.storage, experiment.audits)
