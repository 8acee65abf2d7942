"""What `auditor doctor CONFIG` looks at: what the run of that audit would look at itself, before it asks anything."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from auditor.cli.environment_checks import Check, check_machine
from auditor.config import EMBEDDED, AuditConfig, ModelSection
from auditor.errors import AuditorError
from auditor.redaction import redact

CONNECT_S = 3.0


def check_all(path: Path | None, storage: str | None) -> list[Check]:
    """Every check in order; with a config, what that audit needs too. No text holds a secret."""
    return [Check(c.state, c.name, redact(c.found), redact(c.mend)) for c in _all(path, storage)]


def _all(path: Path | None, storage: str | None) -> list[Check]:
    from auditor.config import load_config
    from auditor.run import storage_url

    if path is None:
        return check_machine(storage_url(storage))
    try:
        config = load_config(path)
    except AuditorError as error:
        return [*check_machine(storage_url(storage)), _failed("config", error)]
    try:
        url = storage_url(storage, config)
    except AuditorError as error:
        return [*check_machine(None), _failed("storage", error)]
    return [*check_machine(url), *_checks(config, url)]


def is_audit(word: Path, storage: str | None) -> bool:
    """Whether it names no file but an audit that was run or imported."""
    from auditor.run import open_audit

    if word.exists():
        return False
    try:
        open_audit(str(word), storage=storage)
    except AuditorError:
        return False
    return True


def _failed(name: str, error: AuditorError) -> Check:
    return Check("FAIL", name, error.message, error.mend)


def _tried(name: str, look: Callable[[], str]) -> Check:
    """What a look found, or what it says is wrong."""
    try:
        return Check("ok", name, look())
    except AuditorError as error:
        return _failed(name, error)


def _checks(config: AuditConfig, url: str) -> Iterator[Check]:
    planned = _tried("config", lambda: _plan(config))
    yield planned
    if planned.state == "FAIL":
        return
    for model in {m.name: m for m in [*config.models, *config.judge_models]}.values():
        yield from _model(model, is_asked_here=config.run.engine == "local")
    yield from _short_secrets(config)
    trust = list(_trust(config))
    yield from trust
    if config.run.engine == "ray" and all(check.state != "FAIL" for check in trust):
        yield _tried("cluster", lambda: _cluster(config, url))
    if config.limits.budget_usd is not None:
        yield _tried("budget", lambda: _budget(config))
    if config.probes.logprob:
        for model in config.models:
            yield _tried(f"log-probabilities of {model.name}", lambda model=model: _measures(config, model))  # type: ignore[misc]
    yield _tried("encoder", lambda: _encoder(config))
    if config.probes.semantic:
        yield _tried("encoder of moral answers", lambda: _moral_encoder(config))


def _plan(config: AuditConfig) -> str:
    from auditor.agents.logic.item_sets import check_items
    from auditor.agents.semantic.questions import planned_questions
    from auditor.run import planned_survey

    survey = planned_survey(config)
    check_items(config, survey)
    told = [f"{len(config.models)} models"]
    if config.survey is not None:
        cells = config.samples_on(survey)
        told += [f"{len(cells)} cells", f"{sum(cells.values()) * len(config.models)} samples"]
    if config.probes.semantic is not None:
        told += [f"{len(planned_questions(config.probes.semantic))} moral questions"]
    return f"{config.name}: {', '.join(told)}"


def _cluster(config: AuditConfig, url: str) -> str:
    from auditor.run.ray_cluster import look
    from auditor.storage.engine import require_shared

    require_shared(url)
    return look(config.run.ray_address)


def _model(model: ModelSection, *, is_asked_here: bool) -> Iterator[Check]:
    """Of one that workers on other hosts ask, the keys are theirs."""
    from auditor.config import resolve_key

    if (reference := model.api_key) is not None and is_asked_here:
        yield _tried(f"key of {model.name}", lambda: f"{reference} is set" if resolve_key(reference) else "")
    if model.api_base is not None:
        yield _server(model.name, model.api_base)
    if model.model.startswith(EMBEDDED):
        yield _tried(f"weights of {model.name}", lambda: _weights(model))


def _weights(model: ModelSection) -> str:
    from auditor.models.embedded_server import require_package
    from auditor.models.weights import locate

    require_package()
    return locate(model.model.removeprefix(EMBEDDED)).name


def _server(name: str, url: str) -> Check:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_S):
            return Check("ok", f"server of {name}", url)
    except (OSError, ValueError) as error:
        return Check("FAIL", f"server of {name}", f"{url}: {error}", "Start the server, or mend api_base.")


def _trust(config: AuditConfig) -> Iterator[Check]:
    from auditor.bootstrap import redirecting
    from auditor.config.trust import destinations, require_trust

    for name in redirecting():
        yield Check("warn", name, "set, and not heeded", "Name the server in the config, as api_base.")
    try:
        require_trust(config)
    except AuditorError as error:
        yield _failed("keys and hosts", error)
        return
    yield Check("ok", "keys and hosts", destinations(config))


def _short_secrets(config: AuditConfig) -> Iterator[Check]:
    from auditor.run.api_keys import short_secrets_note

    if (note := short_secrets_note(config)) is not None:
        problem, _, fix = note.removeprefix("Warning: ").partition(" How to fix: ")
        yield Check("warn", "length of keys", problem, fix[0].upper() + fix[1:])


def _budget(config: AuditConfig) -> str:
    from auditor.models.budget import require_prices

    require_prices({m.name: m for m in [*config.models, *config.judge_models]}.values(), config.limits)
    return f"${config.limits.budget_usd:g}, and every price is known"


def _measures(config: AuditConfig, model: ModelSection) -> str:
    from auditor.domain import Measure
    from auditor.models.continuation import check_continuation
    from auditor.models.logprobs import measures

    assert config.probes.logprob is not None
    found = measures(model, config.probes.logprob.method)
    if Measure.CONTINUATION in found:
        check_continuation(model)
    return ", else ".join(m.value for m in found) or "not measurable: what it offers has none"


def _encoder(config: AuditConfig) -> str:
    from auditor.run import NO_ENCODER, encoder_of

    if encoder_of(config) is not None:
        return config.embedding.model
    why = 'model = "none"' if config.embedding.model == NO_ENCODER else "no cell has two answers to compare"
    return f"none is needed: {why}"


def _moral_encoder(config: AuditConfig) -> str:
    from auditor.run import moral_encoder_of

    moral_encoder_of(config)
    assert config.probes.semantic is not None
    return config.probes.semantic.encoder or config.embedding.model
