"""More samples and other temperatures: subsets by hand, known truth, and only what is missing asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.config import AuditConfig
from auditor.domain import canonical_json
from auditor.errors import UsageError
from auditor.experiments.sampling import build_variant, direct_temperature, samples
from auditor.experiments.stored_audit import Experiment, ExperimentContext
from auditor.reports.data.sampling import build_subsample_row, find_enough_samples
from auditor.reports.output import render_document
from auditor.reports.sections.experiments.sampling import build_sampling_document
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.support.audit_configs import THREE_SAMPLES, config, with_models
from tests.support.comparison_judge import TOPICS
from tests.support.fake_server import FakeServer
from tests.support.families_of_tests import run_checked
from tests.support.known import known
from tests.support.synthetic_audit import populate

CELLS = {"source": "wvs7-sample", "countries": ["Germany"], "topics": TOPICS[2:5]}


def test_the_range_is_that_of_new_answers_however_many_are_recorded() -> None:
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 0.5, 150)
    lean = 0.7 * truth + rng.normal(0, 0.2, 150)

    def answers(k: int) -> np.ndarray:
        return lean[:, None] + rng.normal(0, 0.6, (150, k))

    for k in (1, 4):
        new_correlations = [float(np.corrcoef(answers(k).mean(axis=1), truth)[0, 1]) for _ in range(2000)]
        true = float(np.diff(np.quantile(new_correlations, (0.025, 0.975)))[0])
        shown = [build_subsample_row(i, "m", answers(5), truth, k, None).r for i in range(8)]
        widths = [(e.ci_high or 0.0) - (e.ci_low or 0.0) for e in shown]
        assert np.mean(widths) == pytest.approx(true, rel=0.15)


def test_more_samples_are_steadier_nearer_and_dearer(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/audit.db"
    with open_database(storage) as db:
        audit = populate(db, models=3, countries=12, topics=8, samples=5, judges=1)
    experiment = run_checked(samples, ExperimentContext(storage), audit.name, [1, 3, 5, 10]).data
    first = [row for row in experiment.rows if row.model == "alder"]
    assert [row.setting for row in first] == [1, 3, 5]
    spreads = [row.spread for row in first]
    assert spreads[0] is not None
    assert spreads[2] is not None
    assert spreads[0] == pytest.approx(0.08, abs=0.01)  # the noise of the population's samples
    assert spreads[2] == pytest.approx(spreads[0] / np.sqrt(5))
    assert [row.r.value for row in first] == sorted(row.r.value or 0.0 for row in first)
    assert [row.scored for row in first] == sorted(row.scored for row in first)
    assert first[1].r.ci_low is not None
    assert first[2].r.ci_low is None
    assert first[2].usd == pytest.approx(5 * known(first[0].usd))
    assert all(row.usd is None for row in experiment.rows if row.model == "cedar")  # no known price
    assert experiment.missing == {"10": 5 * experiment.cells * 3}
    assert "10" in render_document(build_sampling_document(experiment), "html")


def test_a_variant_asks_only_what_is_not_recorded(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 2, survey=CELLS, probes=THREE_SAMPLES)
    run_audit(audit, storage=storage)
    before = len(server.requests)
    more = build_variant(audit, samples=5)
    run_audit(more, storage=storage)
    assert len(server.requests) - before == 3 * 2 * 2  # two more samples a cell, no review
    context = ExperimentContext(storage)
    experiment = samples(context, audit.name, [3, 5]).data
    assert {row.setting for row in experiment.rows} == {3, 5}
    assert experiment.missing == {}
    cold = direct_temperature(context, audit.name, [0.2, audit.direct.temperature]).data
    assert cold.missing == {"0.2": 3 * 3 * 2}
    assert {row.setting for row in cold.rows} == {audit.direct.temperature}
    before = len(server.requests)
    warm = run_checked(direct_temperature, context, audit.name, [0.2, audit.direct.temperature], ask=True).data
    assert len(server.requests) - before == 3 * 3 * 2
    assert warm.missing == {}
    assert {row.setting for row in warm.rows} == {0.2, audit.direct.temperature}


@pytest.mark.parametrize("spoilt", ["half run", "another config"])
def test_a_variant_that_is_not_whole_or_not_the_same_replaces_nothing(tmp_path: Path, spoilt: str) -> None:
    context = ExperimentContext(f"sqlite:///{tmp_path}/audit.db")
    with open_database(context.url) as db:
        audit = populate(db, models=2, countries=6, topics=5, samples=3)
        before = samples(context, audit.name, [3, 5]).data
        assert audit.config is not None
        more = build_variant(AuditConfig.model_validate_json(audit.config), samples=5)
        other = more if spoilt == "half run" else more.model_copy(update={"seed": 99})
        saved = audits.save_audit(
            db, name=more.name, config=canonical_json(other.model_dump(mode="json")), config_hash=other.hash,
            survey=audits.load_audit_survey(db, audit), environment={"auditor": "0.1.0"},
        )  # fmt: skip
        audits.set_stage(db, saved.id, "elicit" if spoilt == "half run" else audits.FINISHED)
    assert samples(context, audit.name, [3, 5]).data == before
    assert {row.setting for row in before.rows} == {3}
    assert before.missing == {"5": 2 * before.cells * 2}


def test_several_languages_are_refused_before_a_model_is_asked(server: FakeServer, storage: str) -> None:
    both = config(server.url, 2, survey=CELLS, language=["en", "de"], judges=[])
    run_audit(both, storage=storage)
    n_requests = len(server.requests)
    experiments: dict[Experiment, float] = {samples: 9, direct_temperature: 0.1}
    for experiment, setting in experiments.items():
        with pytest.raises(UsageError, match="several languages"):
            experiment(ExperimentContext(storage), both.name, [setting], ask=True)
    assert len(server.requests) == n_requests


def test_a_variant_is_a_config_of_its_own_that_validates() -> None:
    audit = config("http://127.0.0.1:1", 2)
    other = build_variant(audit, samples=7, temperature=0.5)
    assert AuditConfig.model_validate(other.model_dump(mode="json")) == other
    assert other.name == "scripted.k7.t0.5"
    assert len(build_variant(audit.model_copy(update={"name": "x" * 100}), samples=10).name) == 100
    with_own = with_models(audit, temperature=1.0)
    assert [model.temperature for model in build_variant(with_own, temperature=0.5).models] == [None, None]


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 1), (0.2, 5), (1.0, None)])
def test_where_more_samples_stop_helping_depends_on_the_noise(noise: float, expected: int | None) -> None:
    """MAE with k samples is sqrt(2 / pi * (0.3² + noise² / k)): by formula 5 samples are within 0.01 of 10 at 0.2."""
    numbers = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = rng.normal(0, 0.5, 2000)
        answers = (truth + rng.normal(0, 0.3, 2000))[:, None] + noise * rng.normal(size=(2000, 10))
        rows = [build_subsample_row(seed, "m", answers, truth, k, None) for k in (1, 2, 5, 10)]
        [row] = find_enough_samples(rows)
        assert row.largest == 10
        numbers.append(row.samples)
    assert numbers == [expected] * 4


def test_each_temperature_is_asked_once_with_the_largest_number_of_samples(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 2, survey=CELLS, probes=THREE_SAMPLES, judges=[])
    run_audit(audit, storage=storage)
    messages: list[str] = []
    context = ExperimentContext(storage, print_message=messages.append)
    warm_temperature = audit.direct.temperature
    before = len(server.requests)
    cold = samples(context, audit.name, [2, 4], [0.2, warm_temperature])
    assert len(server.requests) == before
    assert cold.data.missing == {"0.2, 4 samples": 3 * 4 * 2, f"{warm_temperature:g}, 4 samples": 3 * 2}
    assert {(row.temperature, row.samples) for row in cold.data.rows} == {(warm_temperature, 2)}
    assert set(cold.data.forecasts) == {f"{audit.name}.k4.t0.2", f"{audit.name}.k4"}
    assert "About 24 (24 to 30) calls" in cold.data.forecasts[f"{audit.name}.k4.t0.2"]
    assert "About 24 (24 to 30) calls" in render_document(cold.document, "html")
    warm = samples(context, audit.name, [2, 4], [0.2, warm_temperature], ask=True)
    assert len(server.requests) - before == 3 * 4 * 2 + 3 * 2  # four samples at 0.2, and one more at the audit's own
    assert [message.split(":")[0] for message in messages] == [f"{audit.name}.k4.t0.2", f"{audit.name}.k4"]
    assert warm.data.missing == {}
    assert {(row.temperature, row.samples) for row in warm.data.rows} == {
        (t, k) for t in (0.2, warm_temperature) for k in (2, 4)
    }
    assert len(warm.data.enough) == 4
    assert "Where more samples stop helping" in render_document(warm.document, "html")
