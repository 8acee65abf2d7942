"""Experiments on audits with the probe `semantic`."""

from __future__ import annotations

from auditor.experiments.accuracy import accuracy
from auditor.experiments.declaration import Experiment
from auditor.experiments.judgements import judgements
from auditor.experiments.rules import rules
from auditor.experiments.temperature import temperature

EXPERIMENTS: tuple[Experiment, ...] = (temperature, rules, accuracy, judgements)
"""In the order of the command's help."""
