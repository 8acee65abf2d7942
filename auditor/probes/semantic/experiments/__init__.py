"""Experiments on audits with the probe `semantic`."""

from __future__ import annotations

from auditor.experiments.declaration import Experiment
from auditor.probes.semantic.experiments.accuracy import accuracy
from auditor.probes.semantic.experiments.judgements import judgements
from auditor.probes.semantic.experiments.rules import rules
from auditor.probes.semantic.experiments.temperature import temperature

EXPERIMENTS: tuple[Experiment, ...] = (temperature, rules, accuracy, judgements)
"""In the order of the command's help."""
