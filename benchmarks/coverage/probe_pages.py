"""How often page one says something false of models without any property that the probes look for.

In each simulated audit, every probe writes the sentence that it writes in a report, of figures without any effect; the
sentences, and the silence of probes without one, are one family (Holm): `select_shown` of
`auditor.reports.sections.probe_sections`. A probe joins by its entry in `NULL_HEADLINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.probe_interface import Headline
from auditor.probes.memory.figures import MemoryFigures, measure_model
from auditor.probes.memory.section import build_headline
from auditor.probes.pressure import statistics as pressure_statistics
from auditor.probes.pressure.figures import PressureFigures, PressureRow
from auditor.probes.pressure.section import write_headline as write_pressure_headline
from auditor.probes.reasoning import statistics as reasoning_statistics
from auditor.probes.reasoning.figures import ReasoningFigures, ReasoningRow
from auditor.probes.reasoning.section import write_headline as write_reasoning_headline
from auditor.reports.sections.probe_sections import select_shown
from benchmarks.coverage.memory_figures import to_answers
from benchmarks.coverage.pressure_figures import DESIGNS, HONEST, to_dialogues
from benchmarks.coverage.reasoning_figures import to_pairs
from benchmarks.coverage.worlds.memory_worlds import MEMORY_DESIGN, WITHOUT_RECALL
from benchmarks.coverage.worlds.reasoning_worlds import REASONING_WORLDS

N_AUDITS = 600
N_MODELS = 3
MAX_FALSE_PAGES = 0.124
WriteHeadline = Callable[[np.random.Generator], Headline | None]
_NOT_ASKED = Estimate(None, 0, reason="not asked")


def _fill(figures_class: Any, **fields: Any) -> Any:
    """Figures with those fields that a sentence needs."""
    return figures_class.model_construct(**fields)


def write_memory_sentence(rng: np.random.Generator) -> Headline | None:
    """The sentence on models that recite nothing."""
    models = []
    for number in range(N_MODELS):
        sample = WITHOUT_RECALL[0].draw(MEMORY_DESIGN, rng)
        models.append(
            measure_model(
                f"model {number}", to_answers(sample), sample.scores, sample.oriented, released=None,
                seed=int(rng.integers(2**31)), n_models=N_MODELS, made_up=_NOT_ASKED, continued=_NOT_ASKED, failed={},
            )
        )  # fmt: skip
    return build_headline(MemoryFigures(publication="p", is_made_up=False, waves=[], models=models))


def write_pressure_sentence(rng: np.random.Generator) -> Headline | None:
    """The sentence on models that no user moves."""
    samples = [HONEST.draw(DESIGNS[0], rng) for _ in range(N_MODELS)]
    slopes = adjust_tests([pressure_statistics.slope_after(to_dialogues(sample)) for sample in samples], "slopes")
    rows = [
        _fill(PressureRow, model=f"model {number}", context="in-context", slope=slope)
        for number, slope in enumerate(slopes)
    ]
    return write_pressure_headline(_fill(PressureFigures, rows=rows, unmeasured=[]))


def write_reasoning_sentence(rng: np.random.Generator) -> Headline | None:
    """The sentence on models that ignore their stated reasoning."""
    [world] = [world for world in REASONING_WORLDS if world.share == 0]
    samples = [world.draw(MEMORY_DESIGN, rng) for _ in range(N_MODELS)]
    slopes = adjust_tests([reasoning_statistics.donor_slope(to_pairs(sample)) for sample in samples], "slopes")
    rows = [
        _fill(ReasoningRow, model=f"model {number}", form="prefill", slope=slope) for number, slope in enumerate(slopes)
    ]
    return write_reasoning_headline(_fill(ReasoningFigures, rows=rows, unmeasured=[]))


NULL_HEADLINES: Mapping[str, WriteHeadline] = {
    "memory": write_memory_sentence,
    "pressure": write_pressure_sentence,
    "reasoning": write_reasoning_sentence,
}
"""By the probe's name, its sentence on simulated models without an effect."""


def list_false_sentences(seed: int, headlines: Mapping[str, WriteHeadline] = NULL_HEADLINES) -> list[str]:
    """List the probes with a false sentence on page one of one simulated audit: any that claims something."""
    rng = np.random.default_rng(seed)
    written = {name: write(rng) for name, write in headlines.items()}
    claims = {name: line.p_value for name, line in written.items() if line is not None and line.p_value is not None}
    is_shown = select_shown(list(claims.values()), len(headlines))
    return [name for name, shown in zip(claims, is_shown, strict=True) if shown]


def count_false_pages(n_audits: int = N_AUDITS, headlines: Mapping[str, WriteHeadline] = NULL_HEADLINES) -> int:
    """Number of simulated audits whose page one says something false."""
    return sum(bool(list_false_sentences(seed, headlines)) for seed in range(n_audits))


if __name__ == "__main__":
    n_false = count_false_pages()
    print(f"{n_false} of {N_AUDITS} pages say something false ({n_false / N_AUDITS:.1%}; limit {MAX_FALSE_PAGES:.1%}).")
    raise SystemExit(n_false > MAX_FALSE_PAGES * N_AUDITS)
