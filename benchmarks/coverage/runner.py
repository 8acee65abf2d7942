"""Runs a study: draws samples of a world and design until every figure is judged."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.figures import Design, Figure, Study, World
from benchmarks.coverage.rule import CHECKPOINTS, Record, Summary

NAIVE_RUNS = CHECKPOINTS[0]
"""Runs in which the naive interval is computed too: it fails by far."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the study says about one figure in one world and design.

    Attributes:
        naive: the same for the interval that was printed before, over the first runs; None without one.
    """

    study: str
    figure: str
    world: str
    design: str
    summary: Summary
    naive: Summary | None


def measure(
    study: Study, world: World, design: Design, checkpoints: Iterable[int] = CHECKPOINTS, naive_runs: int = NAIVE_RUNS
) -> list[Result]:
    """Simulate audits of one world and design until each figure of the study is judged.

    Args:
        checkpoints: numbers of runs after which the figures that are judged are left out of further runs.
        naive_runs: number of runs in which the naive intervals are computed.
    """
    open_figures: list[Figure] = list(study.figures)
    records: dict[str, Record] = {}
    naive_records: dict[str, Record] = {}
    n_done = 0
    for checkpoint in checkpoints:
        for run in range(n_done, checkpoint):
            sample = world.draw(design, _make_generator(study, world, design, run))
            for figure in open_figures:
                if figure.key not in sample.truths:
                    continue
                truth = float(sample.truths[figure.key])
                max_error = None if figure.max_error is None else figure.max_error(sample)
                records.setdefault(figure.key, Record()).add(figure.compute(sample), truth, max_error)
                if figure.naive is not None and run < naive_runs:
                    naive_records.setdefault(figure.key, Record()).add(figure.naive(sample), truth)
        n_done = checkpoint
        open_figures = [
            figure
            for figure in open_figures
            if figure.key in records and not _summarize(records[figure.key], figure, design).is_decided
        ]
        if not open_figures:
            break
    return [
        Result(
            study.name,
            figure.key,
            world.name,
            design.label,
            _summarize(records[figure.key], figure, design),
            _summarize(naive_records[figure.key], figure, design) if figure.key in naive_records else None,
        )
        for figure in study.figures
        if figure.key in records
    ]


def _summarize(record: Record, figure: Figure, design: Design) -> Summary:
    """What the runs say about a figure."""
    return record.summarize(figure.count_units(design), has_width_rule=figure.has_width_rule)


def _make_generator(study: Study, world: World, design: Design, run: int) -> np.random.Generator:
    """Random numbers of one run, which depend on nothing else."""
    return np.random.default_rng([zlib.crc32(f"{study.name}/{world.name}/{design.label}".encode()), run])
