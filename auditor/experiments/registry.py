"""All experiments, in the order of the command's help."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from auditor.experiments.judges import bias, drift, holdout, planted, validity
from auditor.experiments.robustness import robustness
from auditor.experiments.sampling import direct_temperature, nonresponse, samples, savings
from auditor.experiments.stored_audit import Experiment


def _list_experiments_of_probes() -> list[Experiment]:
    """List `EXPERIMENTS` of the packages `experiments` in the folders of built-in probes."""
    probes = Path(__file__).parent.parent / "probes"
    names = sorted(file.parts[-3] for file in probes.glob("*/experiments/__init__.py"))
    modules = [import_module(f"auditor.probes.{name}.experiments") for name in names]
    return [experiment for module in modules for experiment in module.EXPERIMENTS]


EXPERIMENTS: tuple[Experiment, ...] = (
    planted, bias, drift, holdout, validity,
    *_list_experiments_of_probes(),
    robustness, nonresponse, samples, direct_temperature, savings,
)  # fmt: skip
