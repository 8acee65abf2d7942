"""Experiments on audits with the probe `semantic`."""

from __future__ import annotations

from auditor.experiments.stored_audit import Experiment
from auditor.probes.semantic.experiments.runs import accuracy, judgements, rules, temperature

EXPERIMENTS: tuple[Experiment, ...] = (temperature, rules, accuracy, judgements)
"""In the order of the command's help."""
