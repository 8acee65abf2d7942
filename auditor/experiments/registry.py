"""All experiments, in the order of the command's help."""

from __future__ import annotations

from auditor.experiments.accuracy import accuracy
from auditor.experiments.bias import bias
from auditor.experiments.declaration import Experiment
from auditor.experiments.direct_temperature import direct_temperature
from auditor.experiments.drift import drift
from auditor.experiments.holdout import holdout
from auditor.experiments.judgements import judgements
from auditor.experiments.nonresponse import nonresponse
from auditor.experiments.planted import planted
from auditor.experiments.rules import rules
from auditor.experiments.samples import samples
from auditor.experiments.savings import savings
from auditor.experiments.temperature import temperature

EXPERIMENTS: tuple[Experiment, ...] = (
    planted, bias, drift, holdout,
    temperature, rules, accuracy, judgements,
    nonresponse, samples, direct_temperature, savings,
)  # fmt: skip
