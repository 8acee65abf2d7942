"""`auditor review --plan` and `--sample`: labels for a precision, when labelling may stop, and what is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from auditor.cli.review import describe_plan
from auditor.domain import Outcome, Ruling
from auditor.domain.labels import LabelKind
from auditor.metrics.labels.label_plan import labels_for_half_width
from auditor.reports.data.judge_quality.build import plan_labels, track_share
from auditor.reports.data.judge_quality.labelled_traces import read_trace_key
from auditor.reports.data.report_source import load_source
from auditor.review.label_sampling import draw_label_sample
from auditor.storage import audits, labels, results
from auditor.storage.database import open_database
from auditor.storage.labels import append_labels, load_label_sample, load_labels
from auditor.storage.records import save_records
from tests.support.cli_runner import auditor, succeed
from tests.support.known import known
from tests.support.planted_labels import make_label
from tests.support.review_audit import save_review_audit
from tests.support.synthetic_audit import populate

PLAN = ("review", "population", "--plan", "--half-width", "0.05")


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the synthetic audit of 3 models."""
    url = f"sqlite:///{tmp_path / 'audits.db'}"
    monkeypatch.setenv("AUDITOR_STORAGE", url)
    with open_database(url) as db:
        populate(db)
    return url


def label_sample(storage: str, n: int, n_labelled: int) -> None:
    """Draw a sample, and label its first traces: every fourth is INVALID."""
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "population")
        draw_label_sample(db, audit, LabelKind.TRACE, n)
        rows = load_label_sample(db, audit.id, LabelKind.TRACE)[:n_labelled]
        keys = [read_trace_key(row.unit.parts) for row in rows]
        append_labels(db, audit.id, [make_label(key, is_valid=i % 4 > 0) for i, key in enumerate(keys)])


def test_the_plan_names_labels_of_each_model_and_the_floor(storage: str) -> None:
    result = succeed(*PLAN)
    with open_database(storage, create=False) as db:
        plan = plan_labels(load_source(db, "population"), 0.05, 0.1)
    assert [row.needed for row in plan.models] == [labels_for_half_width(0.05, 0.4, row.traces) for row in plan.models]
    assert all(row.needed < row.traces for row in plan.models)
    assert (plan.is_sd_measured, plan.low, plan.labelled) == (False, None, 0)
    sentence = f"{plan.needed} labels in all give each model's corrected share of VALID a 95% CI of ± 5 to 7 points"
    assert sentence in result.stdout
    assert "no number of labels gives less than about ±" in result.stdout
    assert "6 topics leave ± 10.5 points" in result.stdout
    assert f"auditor review population --sample {plan.needed}" in result.stderr


def test_labels_so_far_are_tracked_and_say_when_to_stop(storage: str) -> None:
    label_sample(storage, 150, 100)
    with open_database(storage, create=False) as db:
        source = load_source(db, "population")
        plan, loose = (plan_labels(source, half_width, 0.1) for half_width in (0.02, 0.4))
    assert plan.is_sd_measured
    assert 0.2 < plan.sd < 0.6
    assert plan.labelled == 100
    assert known(plan.low) < 0.75 < known(plan.high)
    assert (plan.may_stop, loose.may_stop) == (False, True)
    assert "Go on labelling" in describe_plan(plan)[-1]
    assert "You may stop labelling" in describe_plan(loose)[-1]
    assert sum(row.labelled for row in plan.models) <= 100


def test_an_imported_sample_has_no_sequence_since_its_file_has_no_random_order(storage: str, tmp_path: Path) -> None:
    with open_database(storage, create=False) as db:
        traces = load_source(db, "population").votes.traces
    rows = [
        f"ada,{','.join(map(str, key))},{'VALID' if i < 80 else 'INVALID'},0.2" for i, key in enumerate(traces[:100])
    ]
    file = tmp_path / "imported.csv"
    file.write_text("\n".join(["rater,model,country,topic,sample,verdict,inclusion", *rows]))
    succeed("import", "labels", file, "--audit", "population")
    result = succeed(*PLAN)
    assert "confidence sequence" not in result.stdout
    assert "--sample" not in result.stderr
    assert "The sample was imported." in result.stderr


def test_labels_of_a_sample_of_other_traces_say_nothing_of_all_traces(storage: str) -> None:
    label_sample(storage, 150, 150)
    with open_database(storage, create=False) as db:
        traces = [trace for trace in results.load_traces(db, 1) if trace.outcome is Outcome.OK]
        save_records(db, 1, [replace(trace, key="of another run") for trace in traces[:1]])
    result = succeed(*PLAN)
    assert "of all traces VALID" not in result.stdout
    assert "The labels so far are not used: traces were added, removed or changed since" in result.stderr
    assert result.stderr.strip().endswith(" --redraw")


def test_a_difference_that_all_traces_cannot_show_says_so(storage: str) -> None:
    with open_database(storage, create=False) as db:
        plan = plan_labels(load_source(db, "population"), 0.05, 0.01)
    n_traces = min(row.traces for row in plan.models)
    assert plan.needed_for_difference > n_traces
    assert f"; there are only {n_traces} traces of a model." in describe_plan(plan)[1]
    small = plan.model_copy(update={"needed_for_difference": n_traces})
    assert "there are only" not in describe_plan(small)[1]


def test_labels_after_a_trace_that_was_passed_over_do_not_count(storage: str) -> None:
    label_sample(storage, 60, 1000)
    with open_database(storage, create=False) as db:
        sample = load_label_sample(db, 1, LabelKind.TRACE)
        labels = load_labels(db, 1, LabelKind.TRACE)
    complete = track_share(sample, labels)
    without_first = known(track_share(sample, [label for label in labels if label.unit != sample[0].unit]))
    n_in_stratum = sum(row.stratum == sample[0].stratum for row in sample)
    assert (known(complete).n, without_first.n) == (len(sample), len(sample) - n_in_stratum)
    assert {label.value for label in labels} == {Ruling.VALID.value, Ruling.INVALID.value}


def test_after_labelling_it_is_printed_what_the_labels_show(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def label_all(url: str, audit: str, **_: object) -> None:
        label_sample(url, 60, 40)

    monkeypatch.setattr("auditor.tui.plain_text_app.run_plain_text_labelling", label_all)
    result = succeed("review", "population", "--sample", "60", "--plain")
    with open_database(storage, create=False) as db:
        sequence = track_share(load_label_sample(db, 1, LabelKind.TRACE), load_labels(db, 1, LabelKind.TRACE))
    assert sequence is not None
    assert f"people find {100 * sequence.low:.0f}% to {100 * sequence.high:.0f}% of all traces VALID" in result.stderr
    assert f"({sequence.n} labels; confidence sequence" in result.stderr


def test_an_audit_without_verdicts_has_nothing_to_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'audits.db'}"
    monkeypatch.setenv("AUDITOR_STORAGE", url)
    with open_database(url) as db:
        populate(db, models=1, countries=5, topics=5)
    result = auditor(*PLAN)
    assert result.returncode != 0
    assert "audit 'population' has no verdicts of judges to measure" in result.stderr


@pytest.fixture
def moral_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the audit `moral` of 180 traces."""
    url = f"sqlite:///{tmp_path / 'audits.db'}"
    monkeypatch.setenv("AUDITOR_STORAGE", url)
    with open_database(url) as db:
        save_review_audit(db)
    return url


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Arguments with which the plain text form was opened."""
    calls: list[dict[str, Any]] = []

    def run(url: str, audit: str, **options: Any) -> None:
        calls.append({"url": url, "audit": audit} | options)

    monkeypatch.setattr("auditor.tui.plain_text_app.run_plain_text_labelling", run, raising=False)
    return calls


def count_sampled(moral_storage: str) -> int:
    with open_database(moral_storage, create=False) as db:
        return len(labels.load_label_sample(db, audits.get_audit(db, "moral").id, LabelKind.TRACE))


def test_a_sample_is_drawn_and_opened(moral_storage: str, opened: list[dict[str, Any]]) -> None:
    result = succeed("review", "moral", "--sample", "90", "--rater", "ada", "--second-share", "0.5", "--raters", "3")
    assert result.stderr == "Label sample: 90 of 180 traces, from 6 strata (model × verdict).\n"
    assert opened == [
        {
            "url": moral_storage,
            "audit": "moral",
            "rater": "ada",
            "kind": LabelKind.TRACE,
            "second_rater_share": 0.5,
            "raters_per_shared_unit": 3,
        }
    ]


def test_without_a_number_the_drawn_sample_is_opened_and_with_one_extended(
    moral_storage: str, opened: list[dict[str, Any]]
) -> None:
    ways = (("--sample",), ("--sample", "--plain"), ("--plain", "--sample"))
    for words in ways:
        assert "has no label sample of traces yet" in auditor("review", "moral", *words).stderr
    assert opened == []
    auditor("review", "moral", "--sample", "90")
    for words in ways:
        assert auditor("review", "moral", *words).stderr.startswith("Label sample: 90 of 180 traces,")
    succeed("review", "--sample", "moral")
    assert len(opened) == 5
    extended = auditor("review", "--sample=120")
    assert "120 of 180 traces, 30 of them new" in extended.stderr
    assert count_sampled(moral_storage) == 120


def test_a_sample_that_the_minimum_makes_larger_says_so(moral_storage: str, opened: list[dict[str, Any]]) -> None:
    result = auditor("review", "--sample", "20", "--stratify", "model")
    assert (
        "30 of 180 traces, from 3 strata (model). It is larger than 20: every stratum has at least 10" in result.stderr
    )


def test_traces_that_no_judge_reviewed_are_left_out(moral_storage: str, opened: list[dict[str, Any]]) -> None:
    with open_database(moral_storage) as db:
        audit_id = audits.get_audit(db, "moral").id
        verdicts = [v for v in results.load_verdicts(db, audit_id) if v.model == "cedar"]
        save_records(db, audit_id, [replace(v, outcome=Outcome.REFUSED, ruling=None) for v in verdicts])
    result = auditor("review", "--sample", "60")
    assert "Label sample: 60 of 120 traces, from 4 strata" in result.stderr
    assert result.stderr.endswith("Left out: 60 traces without a judge's verdict.\n")


WRONG_OPTIONS = {
    "--stratify model": "--stratify works only with --sample",
    "--kind comparison": "--kind works only with --sample",
    "--redraw": "--redraw works only with --sample",
    "--sample 5 --open-book": "--open-book cannot be combined with --sample",
    "--sample -5": "'--sample'",
    "--sample 5 --stratify modell": "Did you mean 'model'?",
    "--sample 5 --kind comparison": "has no comparison to label",
}


def test_wrong_options_draw_nothing(moral_storage: str, opened: list[dict[str, Any]]) -> None:
    for words, message in WRONG_OPTIONS.items():
        result = auditor("review", "moral", *words.split())
        assert result.returncode in (1, 2), words
        assert message in result.stderr
    assert opened == []
    assert count_sampled(moral_storage) == 0


def test_a_rater_needs_a_name(
    moral_storage: str, opened: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "",
        "  ",
    ):  # such as of a variable that is not set: the decisions of all would be of the machine's user
        assert "a rater needs a name" in auditor("review", "moral", "--sample", "90", "--rater", name).stderr
    assert (opened, count_sampled(moral_storage)) == ([], 0)
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=KeyError("uid not found: 1234")))  # as in a container
    assert "your user name is not known" in auditor("review", "moral", "--sample", "90").stderr
    succeed("review", "moral", "--sample", "90", "--rater", " ada ")
    assert opened[0]["rater"] == " ada "  # as given: the session finds the name as stored


@pytest.mark.parametrize("stored_name", ["ada ", "Jose\u0301"])
def test_a_rater_whose_name_was_stored_as_typed_goes_on(moral_storage: str, stored_name: str) -> None:
    with open_database(moral_storage) as db:
        audit = audits.get_audit(db, "moral")
        draw_label_sample(db, audit, LabelKind.TRACE, 90)
        unit = load_label_sample(db, audit.id, LabelKind.TRACE)[0].unit
        append_labels(db, audit.id, [replace(make_label(read_trace_key(unit.parts), is_valid=True), rater=stored_name)])
    assert "1 done (1 by you)" in succeed("review", "moral", "--sample", "--plain", "--rater", stored_name).stdout
    assert "You label as ben." in succeed("review", "moral", "--sample", "--plain", "--rater", " ben ").stdout


def test_without_arguments_the_audits_are_listed(storage: str) -> None:
    result = succeed("review")
    assert "1. population: " in result.stdout
