"""What `auditor doctor CONFIG` looks at: what the run of that audit would look at itself, before it asks anything."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from auditor.cli.environment_checks import DoctorCheck, check_environment
from auditor.config import EMBEDDED_PREFIX, AuditConfig, ModelSection
from auditor.errors import AuditorError
from auditor.redaction import redact

CONNECT_TIMEOUT_S = 3.0


def run_doctor_checks(path: Path | None, storage: str | None) -> list[DoctorCheck]:
    """Every check in order; with a config, what that audit needs too. No text holds a secret."""
    return [DoctorCheck(c.state, c.name, redact(c.found), redact(c.mend)) for c in _collect_checks(path, storage)]


def _collect_checks(path: Path | None, storage: str | None) -> list[DoctorCheck]:
    from auditor.config import load_config
    from auditor.run import resolve_storage_url

    if path is None:
        return check_environment(resolve_storage_url(storage))
    try:
        config = load_config(path)
    except AuditorError as error:
        return [*check_environment(resolve_storage_url(storage)), _make_failed_check("config", error)]
    try:
        url = resolve_storage_url(storage, config)
    except AuditorError as error:
        return [*check_environment(None), _make_failed_check("storage", error)]
    return [*check_environment(url), *_check_config(config, url)]


def is_audit_name(name_or_path: Path, storage: str | None) -> bool:
    """Whether it names no file but an audit that was run or imported."""
    from auditor.run import open_audit

    if name_or_path.exists():
        return False
    try:
        open_audit(str(name_or_path), storage=storage)
    except AuditorError:
        return False
    return True


def _make_failed_check(name: str, error: AuditorError) -> DoctorCheck:
    return DoctorCheck("FAIL", name, error.message, error.how_to_fix)


def _run_check(name: str, check_function: Callable[[], str]) -> DoctorCheck:
    """What a look found, or what it says is wrong."""
    try:
        return DoctorCheck("ok", name, check_function())
    except AuditorError as error:
        return _make_failed_check(name, error)


def _check_config(config: AuditConfig, url: str) -> Iterator[DoctorCheck]:
    planned = _run_check("config", lambda: _describe_plan(config))
    yield planned
    if planned.state == "FAIL":
        return
    for model in {m.name: m for m in [*config.models, *config.judge_models]}.values():
        yield from _check_model(model, is_called_locally=config.run.engine == "local")
    yield from _check_secret_lengths(config)
    trust = list(_check_trust(config))
    yield from trust
    if config.run.engine == "ray" and all(check.state != "FAIL" for check in trust):
        yield _run_check("cluster", lambda: _check_cluster(config, url))
    if config.limits.budget_usd is not None:
        yield _run_check("budget", lambda: _check_budget(config))
    if config.probes.logprob:
        for model in config.models:
            yield _run_check(f"log-probabilities of {model.name}", lambda model=model: _check_measures(config, model))  # type: ignore[misc]
    yield _run_check("encoder", lambda: _check_encoder(config))
    if config.probes.semantic:
        yield _run_check("encoder of moral answers", lambda: _check_semantic_encoder(config))


def _describe_plan(config: AuditConfig) -> str:
    from auditor.agents.logic.item_sets import check_items
    from auditor.agents.semantic.questions import load_planned_questions
    from auditor.run import load_planned_survey

    survey = load_planned_survey(config)
    check_items(config, survey)
    told = [f"{len(config.models)} models"]
    if config.survey is not None:
        cells = config.samples_by_cell(survey)
        told += [f"{len(cells)} cells", f"{sum(cells.values()) * len(config.models)} samples"]
    if config.probes.semantic is not None:
        told += [f"{len(load_planned_questions(config.probes.semantic))} moral questions"]
    return f"{config.name}: {', '.join(told)}"


def _check_cluster(config: AuditConfig, url: str) -> str:
    from auditor.run.ray_cluster import describe_cluster
    from auditor.storage.engine import require_shareable_url

    require_shareable_url(url)
    return describe_cluster(config.run.ray_address)


def _check_model(model: ModelSection, *, is_called_locally: bool) -> Iterator[DoctorCheck]:
    """Of one that workers on other hosts ask, the keys are theirs."""
    from auditor.config import resolve_secret

    if (reference := model.api_key) is not None and is_called_locally:
        yield _run_check(f"key of {model.name}", lambda: f"{reference} is set" if resolve_secret(reference) else "")
    if model.api_base is not None:
        yield _check_server(model.name, model.api_base)
    if model.model.startswith(EMBEDDED_PREFIX):
        yield _run_check(f"weights of {model.name}", lambda: _check_weight_file(model))


def _check_weight_file(model: ModelSection) -> str:
    from auditor.models.embedded_server import require_xllamacpp
    from auditor.models.weights import locate_weights

    require_xllamacpp()
    return locate_weights(model.model.removeprefix(EMBEDDED_PREFIX)).name


def _check_server(name: str, url: str) -> DoctorCheck:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_TIMEOUT_S):
            return DoctorCheck("ok", f"server of {name}", url)
    except (OSError, ValueError) as error:
        return DoctorCheck("FAIL", f"server of {name}", f"{url}: {error}", "Start the server, or mend api_base.")


def _check_trust(config: AuditConfig) -> Iterator[DoctorCheck]:
    from auditor.bootstrap import redirecting_variables
    from auditor.config.trust import describe_destinations, require_trust

    for name in redirecting_variables():
        yield DoctorCheck("warn", name, "set, and not heeded", "Name the server in the config, as api_base.")
    try:
        require_trust(config)
    except AuditorError as error:
        yield _make_failed_check("keys and hosts", error)
        return
    yield DoctorCheck("ok", "keys and hosts", describe_destinations(config))


def _check_secret_lengths(config: AuditConfig) -> Iterator[DoctorCheck]:
    from auditor.run.api_keys import short_secrets_warning

    if (note := short_secrets_warning(config)) is not None:
        problem, _, fix = note.removeprefix("Warning: ").partition(" How to fix: ")
        yield DoctorCheck("warn", "length of keys", problem, fix[0].upper() + fix[1:])


def _check_budget(config: AuditConfig) -> str:
    from auditor.models.budget import require_prices

    require_prices({m.name: m for m in [*config.models, *config.judge_models]}.values(), config.limits)
    return f"${config.limits.budget_usd:g}, and every price is known"


def _check_measures(config: AuditConfig, model: ModelSection) -> str:
    from auditor.domain import LogprobMeasure
    from auditor.models.continuation import check_scoring_weights
    from auditor.models.logprobs import supported_measures

    assert config.probes.logprob is not None
    found = supported_measures(model, config.probes.logprob.method)
    if LogprobMeasure.CONTINUATION in found:
        check_scoring_weights(model)
    return ", else ".join(m.value for m in found) or "not measurable: what it offers has none"


def _check_encoder(config: AuditConfig) -> str:
    from auditor.run import NO_ENCODER, direct_encoder_loader

    if direct_encoder_loader(config) is not None:
        return config.embedding.model
    why = 'model = "none"' if config.embedding.model == NO_ENCODER else "no cell has two answers to compare"
    return f"none is needed: {why}"


def _check_semantic_encoder(config: AuditConfig) -> str:
    from auditor.run import semantic_encoder_loader

    semantic_encoder_loader(config)
    assert config.probes.semantic is not None
    return config.probes.semantic.encoder or config.embedding.model
