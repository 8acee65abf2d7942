"""Export of an audit as Inspect logs, checked with Inspect's own reader and viewer."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Cell, Outcome, Trace
from auditor.errors import StorageError, UsageError
from auditor.exports.inspect_logs import build_sample, export_inspect
from auditor.exports.traces import TraceRecord
from auditor.run import open_audit
from auditor.storage import audits, results
from auditor.storage.ledger import CallTranscript
from tests.support.inspect_logs import SyntheticDatabase
from tests.support.patience import PATIENCE_S


@pytest.fixture(scope="module", autouse=True)
def inspect_log() -> Any:
    """Inspect's reader of logs, imported here because that takes seconds: not in every worker, during collection."""
    return pytest.importorskip("inspect_ai.log", reason="the extra 'inspect' is not installed")


@pytest.fixture(scope="module")
def alder(inspect_log: Any, inspect_logs: Path) -> Any:
    """The exported log of the model alder."""
    return inspect_log.read_eval_log(str(inspect_logs / "population_alder.eval"))


def test_every_trace_is_a_sample_with_its_own_score_or_none(alder: Any, made_audit: SyntheticDatabase) -> None:
    audit = audits.get_audit(made_audit.db, "population")
    traces = {(t.cell, t.sample): t for t in results.load_traces(made_audit.db, audit.id, model="alder")}
    assert len(alder.samples) == len(traces) > 100
    seen = set()
    for sample in alder.samples:
        trace = traces[(sample.metadata["country"], sample.metadata["topic"]), sample.epoch - 1]  # type: ignore[index]
        seen.add(trace.outcome)
        assert sample.metadata["outcome"] == trace.outcome
        score = (sample.scores or {}).get("score")
        assert (None if score is None else score.value) == trace.score
        assert (sample.error is None) == trace.outcome.is_answer
        assert sample.target == f"{audits.load_audit_survey(made_audit.db, audit).scores[trace.cell]:g}"
    assert seen == set(Outcome)


def test_no_failure_has_a_number(alder: Any) -> None:
    for sample in (s for s in alder.samples if s.metadata["outcome"] != "ok"):
        assert "score" not in (sample.scores or {})
    values = [s.value for sample in alder.samples for s in (sample.scores or {}).values()]
    assert not any(isinstance(v, float) and math.isnan(v) for v in values)
    failed = next(s for s in alder.samples if s.metadata["outcome"] == "timeout")
    assert failed.error.message.startswith("timeout")
    assert failed.output.completion == ""


def test_verdicts_are_scores_of_their_judges(alder: Any, made_audit: SyntheticDatabase) -> None:
    audit = audits.get_audit(made_audit.db, "population")
    for verdict in results.load_verdicts(made_audit.db, audit.id, model="alder"):
        sample = next(s for s in alder.samples if s.id == " | ".join(verdict.cell) and s.epoch == verdict.sample + 1)
        score = (sample.scores or {}).get(f"judge:{verdict.judge}")
        assert (None if score is None else score.value) == verdict.ruling
        if verdict.ruling is None:
            assert sample.metadata["judges_without_verdict"][verdict.judge] == verdict.outcome


def test_figures_usage_and_source_are_those_of_the_report(alder: Any, made_audit: SyntheticDatabase) -> None:
    report = open_audit("population", storage=made_audit.url).report()
    row = next(r for r in report.alignment if r.model == "alder")
    [score] = [s for s in alder.results.scores if s.name == "score"]
    figures = {name: metric.value for name, metric in score.metrics.items()}
    assert figures["pearson_r"] == row.pearson_r.value
    assert figures["pearson_r_ci_low"] == row.pearson_r.ci_low
    assert figures["cells"] == row.n
    coverage = next(m for m in report.coverage.models if m.name == "alder")
    assert (score.scored_samples, score.scored_samples + score.unscored_samples) == (coverage.ok, coverage.planned)
    answered = [s for s in alder.samples if s.output.choices]
    assert alder.stats.model_usage["openai/alder-1"].input_tokens == 120 * len(answered)
    assert alder.eval.metadata["auditor"]["audit"] == "population"
    assert alder.status == "success"
    assert alder.eval.viewer.trust_content is False


def test_an_unknown_price_is_no_price(inspect_log: Any, inspect_logs: Path) -> None:
    cedar = inspect_log.read_eval_log(str(inspect_logs / "population_cedar.eval"), header_only=True)
    assert cedar.stats.model_usage["openai/cedar-1"].total_cost is None
    assert cedar.stats.model_usage["openai/cedar-1"].output_tokens > 0


def test_an_export_that_cannot_be_written_is_an_error(made_audit: SyntheticDatabase, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        export_inspect(made_audit.db, "nobody", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        export_inspect(made_audit.db, "population", tmp_path / "file")


def test_all_logs_are_replaced_or_none(made_audit: SyntheticDatabase, tmp_path: Path) -> None:
    names = [log.path.name for log in export_inspect(made_audit.db, "population", tmp_path)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    first, last = (tmp_path / name for name in (min(names), max(names)))
    earlier = last.read_bytes()
    first.write_bytes(earlier)
    last.unlink()
    last.mkdir()
    with pytest.raises(UsageError, match="is a folder, not a file"):
        export_inspect(made_audit.db, "population", tmp_path)
    assert first.read_bytes() == earlier
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.slow
def test_inspect_view_lists_and_opens_the_logs(inspect_logs: Path) -> None:
    with viewer(inspect_logs) as url:
        assert "<title>Inspect View</title>" in fetch(url)
        listed = json.loads(fetch(f"{url}/api/logs"))["files"]
        assert {Path(f["name"]).name for f in listed} == {f"population_{m}.eval" for m in ("alder", "birch", "cedar")}
        name = next(f["name"] for f in listed if "alder" in f["name"])
        shown = json.loads(fetch(f"{url}/api/logs/{urllib.request.quote(name, safe='')}"))  # type: ignore[attr-defined]
    assert shown["eval"]["task"] == "auditor/population"
    assert len(shown["samples"]) == shown["results"]["total_samples"]


@contextlib.contextmanager
def viewer(folder: Path) -> Iterator[str]:
    """Run `inspect view` on a free loopback port, yield its URL, and terminate it afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", str(folder)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, OSError):
                fetch(url)
                break
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "stop"), ("END_TURN", "stop"), ("MAX_TOKENS", "max_tokens"), ("pause_turn", "max_tokens"),
        ("SAFETY", "content_filter"), ("tool_use", "tool_calls"), ("brand_new", "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_native_finish_reasons_become_inspects_own(reason: str | None, stop: str) -> None:
    trace = Trace("alder", Cell("Germany", "divorce"), 0, Outcome.OK, 0.5, "So.", "k")
    first = CallTranscript(text="So.", finish_reason=reason, attempts=1)
    sample = build_sample(TraceRecord(trace, None, (), (), first, None), "openai/alder-1")
    assert sample.output.choices[0].stop_reason == stop
