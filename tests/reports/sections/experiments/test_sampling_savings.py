"""The document of the savings study."""

from __future__ import annotations

from typing import Any

from auditor.reports.data.savings_study import SamplingPlanRow, SavingsStudy
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.sampling import build_savings_document, describe_cheapest_plan


def make_plan(name: str, **changes: Any) -> SamplingPlanRow:
    """A sampling plan without verdicts that changes nothing."""
    figures = {"direct": 0.9, "review": None, "calls": 0.996, "shift": 0.0, "largest": 0.0, "corrected_shift": None}
    figures |= {"corrected_largest": None, "same_tiers": None, "peers": None, "same_winners": None}
    return SamplingPlanRow.model_validate({"name": name, **figures, **changes})


def test_the_lead_names_the_cheapest_plan_that_keeps_every_r() -> None:
    plans = [
        make_plan("slow", calls=0.8, largest=0.01), make_plan("cheap", calls=0.4, largest=0.009),
        make_plan("wrong", calls=0.2, largest=0.011), make_plan("noisy", calls=0.1, corrected_largest=0.02),
    ]  # fmt: skip
    assert describe_cheapest_plan(plans) == (
        "With cheap, every model’s r stays within 0.01 of the full design, for 40% of the calls."
    )
    assert describe_cheapest_plan(plans[2:]) == "No sampling plan keeps every model’s r within 0.01 of the full design."
    assert "No sampling plan" in describe_cheapest_plan([])


def test_the_table_has_every_figure_of_every_plan() -> None:
    plan = make_plan("few", shift=-0.0123, largest=0.0456, same_tiers=0.987, peers=0.0071, same_winners=0.5)
    study = SavingsStudy(audit="x", models=1, cells=9, samples=5, full=1234, rows=[plan])
    text = render_text(build_savings_document(study), width=200)
    for figure in ("1 model, 9 cells, 5 samples", "90.0%", "99.6%", "−0.012", "0.046", "98.7%", "0.007", "50.0%"):
        assert figure in text
