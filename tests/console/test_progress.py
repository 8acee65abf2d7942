"""Progress of a run: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import re
import time

import pytest

from auditor.console import progress
from auditor.console.progress import RunProgress, StageProgress, format_duration
from auditor.domain import Answer, Outcome


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, as a list of one number that tests change."""
    now = [100.0]
    monkeypatch.setattr("auditor.console.progress.time.monotonic", lambda: now[0])
    return now


def stage(**values: float) -> StageProgress:
    """A stage that began at 100 s."""
    return StageProgress("Asking models", started_s=100.0, **values)  # type: ignore[arg-type]


def test_a_line_has_total_rate_cost_time_left_and_failures(clock: list[float]) -> None:
    clock[0] = 110.0
    line = stage(planned=60, completed=20, n_answers=10, n_unusable=2, cost_usd=0.05).describe()
    assert line == "Asking models: 20 of 60, 1.0/s, $0.0500, 40 s left, 2 unusable"


def test_recorded_answers_do_not_count_towards_the_rate(clock: list[float]) -> None:
    clock[0] = 110.0
    assert stage(planned=100, completed=90).describe() == "Asking models: 90 of 100"
    assert "1.0/s" in stage(planned=100, completed=100, n_answers=10).describe()


def test_expected_calls_are_part_of_the_total_until_the_stage_is_over() -> None:
    assert stage(planned=10, expected=50).total == 50
    assert stage(planned=60, expected=50).total == 60
    assert stage(planned=10, expected=50, is_over=True).total == 10


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def follow_run(run_progress: RunProgress) -> None:
    """Report two stages with calls, and one without."""
    run_progress.on_stage_entered("plan")
    run_progress.on_stage_entered("elicit")
    run_progress.on_calls_planned("elicit", 4, 1)
    for outcome in (Outcome.OK, Outcome.TIMEOUT, Outcome.REFUSED):
        run_progress.on_answer("elicit", Answer("key", outcome, cost_usd=0.01))
    run_progress.on_stage_entered("measure")
    run_progress.on_stage_entered("review")
    run_progress.on_calls_planned("review", 2, 0)


def test_calls_that_a_limit_kept_back_are_counted_apart() -> None:
    with RunProgress() as run_progress:
        run_progress.on_stage_entered("elicit")
        for outcome in (Outcome.OK, Outcome.OVER_BUDGET, Outcome.CLIENT_ERROR):
            run_progress.on_answer("elicit", Answer("key", outcome))
    assert (run_progress.n_calls, run_progress.n_unsent) == (1, 2)


def test_totals_are_counted_for_the_summary() -> None:
    with RunProgress(expected_reviews=10) as run_progress:
        follow_run(run_progress)
    assert (run_progress.n_calls, run_progress.n_recorded) == (3, 1)
    assert run_progress.cost_usd == pytest.approx(0.03)
    assert run_progress.outcomes == {"ok": 1, "timeout": 1, "refused": 1}


def test_off_a_terminal_a_line_comes_at_intervals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.01)
    with RunProgress() as run_progress:
        follow_run(run_progress)
        text = ""
        for _ in range(500):
            text += capsys.readouterr().err
            if "Reviewing answers: 0 of 2" in text:
                break
            time.sleep(0.01)
    assert "Reviewing answers: 0 of 2" in text
    assert "?" not in text


def test_models_and_judges_are_shown_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.01)
    with RunProgress(expected_answers=4, expected_reviews=8) as run_progress:
        run_progress.on_stage_entered("plan")
        for stage_name, recorded in (("elicit", 1), ("review", 2)):
            run_progress.on_stage_entered(stage_name)
            run_progress.on_calls_planned(stage_name, 3, recorded)
        text = ""
        for _ in range(500):
            text += capsys.readouterr().err
            if "Reviewing" in text:
                break
            time.sleep(0.01)
        assert "Asking models: 1 of 4 | Reviewing answers: 2 of 8" in text
        run_progress.on_stage_entered("measure")
        assert not any(run_progress._stages[name].is_running for name in ("plan", "elicit"))
        assert run_progress._stages["review"].total == 3


def test_a_short_run_off_a_terminal_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress() as run_progress:
        follow_run(run_progress)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_one_bar_for_each_stage_with_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with RunProgress(expected_reviews=10) as run_progress:
        follow_run(run_progress)
    last_frame = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).rstrip().splitlines()[-2:]
    assert re.match(r"Asking models +\S.* 4 of 4 .*/s \$0\.0300 +2 unusable", last_frame[0])
    assert re.match(r"Reviewing answers +\S.* 0 of 10", last_frame[1])
    assert "?" not in terminal.getvalue().replace("\x1b[?", "")
