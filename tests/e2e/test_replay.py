"""Recorded answers in place of a model: complete audits on an old log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.estimate import forecast_config
from auditor.config import AuditConfig
from auditor.domain import Cell, Outcome, Ruling
from auditor.errors import ImportFileError
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.run.replay import describe_missing_verdicts, load_recorded_verdicts
from auditor.storage import results
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.stored_rows import load_stored

COUNTRIES, TOPICS, SAMPLES = ("DE", "Japan", "Nigeria"), ("homosexuality", "divorce", "abortion"), 2
PROBES: dict[str, Any] = {"direct": {"samples": SAMPLES, "mode": "text"}, "review": {"traces": 1}}


def write_log(folder: Path, shift: float = 0.0) -> Path:
    """Write a log of two models; the second answer on Japan and divorce is a refusal, one on Nigeria is missing."""
    lines = ["model,country,topic,sample,text"]
    for model, factor in (("old", 1), ("older", -1)):
        for i, country in enumerate(COUNTRIES):
            for j, topic in enumerate(TOPICS):
                for k in range(SAMPLES):
                    score = factor * round(0.1 * i - 0.2 * j + 0.05 * k + shift, 2)
                    text = f"They think so in their way.\nSCORE = {score}"
                    if (country, topic, k) == ("Japan", "divorce", 1):
                        text = "I cannot assign a score to this."
                    if (country, topic, k) != ("Nigeria", "abortion", 1):
                        lines.append(f'{model},{country},{topic},{k},"{text}"')
    path = folder / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def config_with_replay(server: FakeServer, file: Path, others: int = 0, **changes: Any) -> AuditConfig:
    """Config of two models replayed from a log, and of some live models."""
    base_config = config(server.url, max(2, others)).model_dump(mode="json")
    models = [{"name": n, "model": f"replay/{n}", "answers": str(file)} for n in ("old", "older")]
    probes = {"direct": PROBES["direct"]}
    live_models = base_config["models"][:others]
    return AuditConfig.model_validate(
        base_config | {"models": [*models, *live_models], "probes": probes, "judges": []} | changes
    )


def test_records_are_verified_without_the_log_only_as_far_as_possible(server: FakeServer, tmp_path: Path) -> None:
    """The calls depend on it: that it is gone is a reason, and no finding. An archive has it."""
    log, file_storage = write_log(tmp_path), f"sqlite:///{tmp_path / 'audits.db'}"
    run_audit(config_with_replay(server, log), storage=file_storage)
    archive = tmp_path / "evidence.zip"
    succeed("export", "evidence", "scripted", "-o", archive, "--storage", file_storage)
    succeed("verify", "scripted", "--storage", file_storage)
    log.unlink()
    verified = auditor("verify", "scripted", "--storage", file_storage)
    assert verified.returncode == 4, verified.stderr
    assert f"{log}: the audit was run with this file, which is not there now" in verified.stderr
    succeed("verify", archive)


def test_a_log_makes_no_calls_and_a_changed_one_other_answers(server: FakeServer, storage: str, tmp_path: Path) -> None:
    run_audit(config_with_replay(server, write_log(tmp_path)), storage=storage)
    assert server.requests == []
    report = open_audit("scripted", storage=storage).report()
    assert [(a.model, a.n) for a in report.alignment] == [("old", 9), ("older", 9)]
    old, older = (a.pearson_r.value for a in report.alignment)
    assert old == pytest.approx(-(older or 0.0))
    [row] = [r for r in report.coverage.models if r.name == "old"]
    assert (row.planned, row.ok, row.losses) == (18, 16, {"refused": 1, "client_error": 1})
    assert report.conflicts.total > 0
    traces = load_stored(storage, results.load_traces)
    assert all((t.score is None) == (t.outcome is not Outcome.OK) for t in traces)
    before = open_audit("scripted", storage=storage).scores()["old", "Germany", "divorce", "direct"]
    run_audit(config_with_replay(server, write_log(tmp_path, shift=0.1)), storage=storage)  # in the same process
    after = open_audit("scripted", storage=storage).scores()["old", "Germany", "divorce", "direct"]
    assert after == pytest.approx((before or 0.0) + 0.1)


def test_a_run_says_how_many_recorded_answers_are_missing(server: FakeServer, tmp_path: Path) -> None:
    log, storage = write_log(tmp_path), ("--storage", f"sqlite:///{tmp_path / 'audits.db'}")
    text = log.read_text("utf-8").replace("DE,divorce", "Germany, DIVORCE")
    log.write_text(text.replace("Japan,homosexuality", "Atlantis,homosexuality"), encoding="utf-8")
    settings = config_with_replay(server, log).model_dump(mode="json", exclude_none=True)
    (tmp_path / "a.yaml").write_text(json.dumps(settings), encoding="utf-8")
    completed = auditor("run", tmp_path / "a.yaml", *storage)
    notice = (
        f"Model 'old': {log} has 15 of 18 answers. A missing one counts as failed; no request is sent. It has answers "
        "on 1 cell that the audit does not have, such as Atlantis, homosexuality: write countries and topics"
    )
    assert notice in " ".join(completed.stderr.split())


def test_live_models_judge_recordings_and_not_vice_versa(server: FakeServer, storage: str, tmp_path: Path) -> None:
    run_audit(config_with_replay(server, write_log(tmp_path), others=2, judges="peers"), storage=storage)
    verdicts = load_stored(storage, results.load_verdicts)
    assert {v.judge for v in verdicts} == {"model-a", "model-b"}
    assert {v.model for v in verdicts} == {"old", "older", "model-a", "model-b"}


def test_log_probabilities_of_recordings_are_not_measurable(server: FakeServer, storage: str, tmp_path: Path) -> None:
    probes = {"direct": PROBES["direct"], "logprob": {"method": "choice"}}
    report = run_audit(config_with_replay(server, write_log(tmp_path), probes=probes), storage=storage).report()
    [total] = [row for row in report.coverage.total if row.method == "logprob"]
    assert total.losses == {"not_measurable": total.planned}


def write_verdicts(folder: Path, judges: tuple[str, ...] = ("x", "y", "z")) -> Path:
    """Write verdicts on the log's first sample of each cell: judges find the model `old` valid, except `z`."""
    lines = ["judge,model,country,topic,sample,verdict,justification"]
    for judge in judges:
        for model in ("old", "older"):
            verdict = "VALID" if (model == "old") != (judge == "z") else "INVALID"
            lines += [f"{judge},{model},{c},{t},0,{verdict},Because." for c in COUNTRIES for t in TOPICS]
    path = folder / "verdicts.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def judges_with_verdicts(file: Path, *names: str) -> list[dict[str, str]]:
    return [{"name": f"judge-{name}", "model": f"replay/{name}", "verdicts": str(file)} for name in names]


def test_recorded_verdicts_settle_conflicts_of_recordings(server: FakeServer, storage: str, tmp_path: Path) -> None:
    judges = judges_with_verdicts(write_verdicts(tmp_path), "x", "y", "z")
    settings = config_with_replay(server, write_log(tmp_path), judges=judges, probes=PROBES)
    run_audit(settings, storage=storage)
    assert server.requests == []
    audit = open_audit("scripted", storage=storage)
    report = audit.report()
    assert report.conflicts.total > 0
    assert report.conflicts.states["majority"] == report.conflicts.total
    agreement = {row.model: row.agreement.value for row in report.peer_agreement}
    assert agreement == pytest.approx({"old": 2 / 3, "older": 1 / 3})
    assert {row.agreement.n for row in report.peer_agreement} == {27}
    verdicts = load_stored(storage, results.load_verdicts)
    assert {(verdict.judge, verdict.justification, bool(verdict.aspects)) for verdict in verdicts} == {
        (f"judge-{name}", "Because.", False) for name in "xyz"
    }
    run_audit(settings, storage=storage)
    assert audit.report().conflicts == report.conflicts


def test_a_missing_verdict_fails_and_another_file_replaces_it(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = write_verdicts(tmp_path)
    complete = file.read_text("utf-8")
    settings = config_with_replay(
        server, write_log(tmp_path), judges=judges_with_verdicts(file, "x", "y", "z"), probes=PROBES
    )
    file.write_text(complete.replace("x,old,DE,divorce,0,VALID,Because.\n", ""), "utf-8")
    survey = load_planned_survey(settings)
    [notice] = describe_missing_verdicts(settings, survey, load_recorded_verdicts(settings, survey))
    assert notice.startswith(f"Judge 'judge-x': {file} has 17 verdicts for up to 18 answers to review.")
    shared_panel = settings.panel.model_copy(update={"judges_per_trace": 1})
    shared = settings.model_copy(update={"panel": shared_panel})
    assert list(describe_missing_verdicts(shared, survey, load_recorded_verdicts(shared, survey))) == []
    run_audit(settings, storage=storage)
    lost = [row for row in open_audit("scripted", storage=storage).report().coverage.judges if row.name == "judge-x"]
    assert [(row.planned, row.ok, row.losses) for row in lost] == [(18, 17, {"client_error": 1})]
    file.write_text(complete.replace("VALID", "INVALID").replace("ININVALID", "VALID"), "utf-8")
    report = run_audit(settings, storage=storage).report()
    agreement = {row.model: row.agreement.value for row in report.peer_agreement}
    assert agreement == pytest.approx({"old": 1 / 3, "older": 2 / 3})


def test_peers_with_recorded_verdicts_judge_each_other(server: FakeServer, storage: str, tmp_path: Path) -> None:
    verdicts = str(write_verdicts(tmp_path, ("old", "older")))
    models = [
        {"name": name, "model": f"replay/{name}", "answers": str(write_log(tmp_path)), "verdicts": verdicts}
        for name in ("old", "older")
    ]
    run_audit(
        config_with_replay(server, write_log(tmp_path), models=models, judges="peers", probes=PROBES), storage=storage
    )
    verdict_rows = load_stored(storage, results.load_verdicts)
    assert {(verdict.judge, verdict.model) for verdict in verdict_rows} == {("old", "older"), ("older", "old")}


def test_recorded_verdicts_are_added_to_an_audit_that_was_run_and_paid_verdicts_stay(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    verdicts, models = write_verdicts(tmp_path), config_with_replay(server, write_log(tmp_path)).models
    live_judge = config(server.url).models[0].model_dump(exclude_unset=True)

    def run_with(judges: list[dict[str, Any]]) -> set[tuple[str, str, Cell, Ruling | None]]:
        settings = {"models": [model.model_dump(exclude_unset=True) for model in models], "judges": judges}
        audit = config(server.url).model_dump(mode="json", exclude_unset=True) | settings | {"probes": PROBES}
        run_audit(AuditConfig.model_validate(audit), storage=storage)
        rows = load_stored(storage, results.load_verdicts)
        return {(row.judge, row.model, row.cell, row.ruling) for row in rows}

    paid = run_with([live_judge])
    n_requests = len(server.requests)
    assert n_requests > 0
    assert len(paid) == 18
    refused = auditor("import", "verdicts", verdicts, "--audit", "scripted", "--storage", storage)
    assert refused.returncode == 2
    assert "`model` = `replay/JUDGE`" in refused.stderr
    both = run_with([live_judge, *judges_with_verdicts(verdicts, "x", "z")])
    assert len(server.requests) == n_requests
    assert paid < both
    assert len(both) == 3 * 18


def test_recorded_models_cost_nothing_so_that_a_budget_holds(server: FakeServer, storage: str, tmp_path: Path) -> None:
    judges = judges_with_verdicts(write_verdicts(tmp_path), "x")
    settings = config_with_replay(server, write_log(tmp_path), judges=judges, limits={"budget_usd": 1})
    forecast = forecast_config(settings, storage)
    assert (forecast.usd.high if forecast.usd else None) == 0
    run_audit(settings, storage=storage)
    assert open_audit("scripted", storage=storage).report().cost.total.usd == 0


def test_recorded_verdicts_that_cannot_be_used_are_refused(server: FakeServer, storage: str, tmp_path: Path) -> None:
    log, file = write_log(tmp_path), write_verdicts(tmp_path)
    judges = judges_with_verdicts(file, "x")
    with pytest.raises(ValueError, match="answers of 'model-a' will be new"):
        config_with_replay(server, log, others=1, judges=judges)
    with pytest.raises(ValueError, match=r"probes\.review\.guess: judges are asked further questions"):
        config_with_replay(server, log, judges=judges, probes={"direct": {"mode": "text"}, "review": {"guess": True}})
    with pytest.raises(ValueError, match=r"only a judge 'replay/NAME' has recorded verdicts"):
        config_with_replay(server, log, judges=[judges[0] | {"model": "openai/x"}])
    with pytest.raises(ImportFileError, match="has no row of the judge 'nobody'"):
        run_audit(config_with_replay(server, log, judges=judges_with_verdicts(file, "nobody")), storage=storage)
    twice = [{"name": n, "model": "replay/old", "answers": str(log)} for n in ("first", "second")]
    with pytest.raises(ValueError, match="'first' and 'second' both replay 'replay/old'"):
        config_with_replay(server, log, judges=judges, models=twice)
    file.write_text(file.read_text("utf-8").replace("DE,", "Atlantis,").replace("Japan,", "A,").replace("Nigeria", "B"))
    with pytest.raises(
        ImportFileError, match="no answer that the judge 'x' has a verdict on, such as old, Atlantis, hom"
    ):
        run_audit(config_with_replay(server, log, judges=judges), storage=storage)


def test_an_impossible_replay_is_refused_before_the_first_call(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="the key 'answers' is missing"):
        config_with_replay(server, write_log(tmp_path), models=[{"name": "old", "model": "replay/old"}])
    with pytest.raises(ValueError, match="recorded answers cannot judge"):
        config_with_replay(
            server, write_log(tmp_path), judges=[{"name": "j", "model": "replay/old", "answers": "x.csv"}]
        )
    missing = [{"name": "m", "model": "replay/nobody", "answers": str(write_log(tmp_path))}]
    with pytest.raises(ImportFileError, match="has no row for the model 'nobody'"):
        run_audit(config_with_replay(server, write_log(tmp_path), models=missing), storage=storage)
