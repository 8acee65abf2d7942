"""Checks of `auditor doctor CONFIG`: those that a run makes before its first request, and `--ping`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from auditor.bootstrap import redirecting_variables
from auditor.cli.doctor import DoctorCheck, check_environment
from auditor.config import EMBEDDED, AuditConfig, ModelSection, load_config, resolve_secret
from auditor.config.installed_probes import load_built_in
from auditor.config.trust import describe_destinations, require_trust, secret_header_variables, short_secrets_warning
from auditor.console.output import print_message, print_table
from auditor.cost_estimation.audit_estimate import build_forecast_row
from auditor.cost_estimation.planned_calls import PlannedCalls
from auditor.domain import LogprobMeasure
from auditor.errors import AuditorError
from auditor.models.budget import join_names, list_unpriced_models, price_advice, require_prices
from auditor.models.embedded_server import require_xllamacpp
from auditor.models.logprobs import supported_measures
from auditor.models.weights import locate_weights
from auditor.redaction import redact
from auditor.reports.data.cost import ForecastRange
from auditor.reports.number_format import pluralize
from auditor.run import (
    NO_ENCODER,
    check_probe_input,
    describe_survey_problems,
    direct_encoder_loader,
    list_unmeasurable,
    load_planned_survey,
    open_audit,
    resolve_storage_url,
)
from auditor.run.ping import ping_models, plan_pings
from auditor.run.ray_cluster import describe_cluster

if TYPE_CHECKING:
    from auditor.config.probe_section import ProbeEncoder
    from auditor.run.ping import PingPlan, PingResult


CONNECT_TIMEOUT_S = 3.0


def run_doctor_checks(path: Path | None, storage: str | None, overrides: Sequence[str] = ()) -> list[DoctorCheck]:
    """Run all checks, with a config also those of its audit; secrets are redacted in the results.

    Args:
        path: the config; None for checks of this machine only.
        storage: database URL of the command line, if any.
        overrides: settings that replace those of the config, as `load_config` takes them.
    """
    return [
        DoctorCheck(check.state, check.name, redact(check.found), redact(check.mend))
        for check in _collect_checks(path, storage, overrides)
    ]


def _collect_checks(path: Path | None, storage: str | None, overrides: Sequence[str]) -> list[DoctorCheck]:
    """All checks in order; if the config or its storage is invalid, an error in place of the checks of the audit."""
    if path is None:
        return check_environment(resolve_storage_url(storage))
    try:
        config = load_config(path, overrides)
    except AuditorError as error:
        return [*check_environment(resolve_storage_url(storage)), _make_failed_check("config", error)]
    try:
        url = resolve_storage_url(storage, config)
    except AuditorError as error:
        return [*check_environment(None), _make_failed_check("storage", error)]
    return [*check_environment(url), *_check_config(config, url)]


def is_audit_name(name_or_path: Path, storage: str | None) -> bool:
    """Whether there is no file of that name, but an audit that was run or imported."""
    if name_or_path.exists():
        return False
    try:
        open_audit(str(name_or_path), storage=storage)
    except AuditorError:
        return False
    return True


def _make_failed_check(name: str, error: AuditorError) -> DoctorCheck:
    """A failed check with an error's message and advice."""
    return DoctorCheck("FAIL", name, error.message, error.how_to_fix)


def _run_check(name: str, check_function: Callable[[], str]) -> DoctorCheck:
    """Run one check: its description if it passes, or its error if it fails."""
    try:
        return DoctorCheck("ok", name, check_function())
    except AuditorError as error:
        return _make_failed_check(name, error)


def _check_config(config: AuditConfig, url: str) -> Iterator[DoctorCheck]:
    """Check all that the config's audit needs, with a database at this URL; stops if the plan is invalid."""
    plan_check = _run_check("config", lambda: _describe_plan(config))
    yield plan_check
    if plan_check.state == "FAIL":
        return
    problem, _, how_to_fix = describe_survey_problems(config, load_planned_survey(config)).partition(" How to fix: ")
    if problem:
        yield DoctorCheck("warn", "countries", problem, how_to_fix)
    yield from _check_measurable(config)
    for model in config.models_by_name.values():
        yield from _check_model(model, is_called_locally=config.run.engine == "local")
    yield from _check_secret_lengths(config)
    trust_checks = list(_check_trust(config))  # whether keys may go to the servers that the config names
    yield from trust_checks
    if config.run.engine == "ray" and all(check.state != "FAIL" for check in trust_checks):
        yield _run_check("cluster", lambda: describe_cluster(config.run.ray_address))
    if config.limits.budget_usd is not None:
        yield _run_check("budget", lambda: _check_budget(config))
    else:
        yield _check_prices(config)
    if config.probes.logprob:
        for model in config.models:
            yield _run_check(f"log-probabilities of {model.name}", lambda model=model: _check_measures(config, model))  # type: ignore[misc]
    yield _run_check("encoder", lambda: _check_encoder(config))
    for name in config.probes.stages:
        probe = load_built_in(name)
        if (encoder := probe.find_encoder(config)) is not None:
            yield _run_check(f"encoder of {probe.noun}s", partial(_check_probe_encoder, encoder))


def _describe_plan(config: AuditConfig) -> str:
    """Describe the audit's models, cells, samples and what other probes plan, in numbers.

    Raises:
        AuditorError: the survey, the items or the questions cannot be used.
    """
    survey = load_planned_survey(config)
    plan_parts = [pluralize(len(config.models), "model")]
    if config.survey is not None:
        cells = config.samples_by_cell(survey)
        plan_parts += [pluralize(len(cells), "cell"), pluralize(sum(cells.values()) * len(config.models), "sample")]
    plan_parts += check_probe_input(config, survey)
    return f"{config.name}: {', '.join(plan_parts)}"


def _check_measurable(config: AuditConfig) -> Iterator[DoctorCheck]:
    """Warn of what probes cannot measure."""
    for sentence in list_unmeasurable(config, load_planned_survey(config)):
        yield DoctorCheck("warn", "probes", sentence)


def _check_model(model: ModelSection, *, is_called_locally: bool) -> Iterator[DoctorCheck]:
    """Check a model's key, server and weights; keys of models that workers call are on other hosts."""
    if is_called_locally:
        for header, variable in secret_header_variables(model).items():
            yield _run_check(
                f"header {header} of {model.name}",
                lambda name=variable: f"{name} is set" if resolve_secret(f"os.environ/{name}") else "",  # type: ignore[misc]
            )
    if model.api_keys and is_called_locally:
        keys = " and ".join(model.api_keys)
        yield _run_check(
            f"key of {model.name}", lambda: f"{keys} is set" if all(map(resolve_secret, model.api_keys)) else ""
        )
    if model.api_base is not None:
        yield _check_server(model.name, model.api_base)
    if model.provider is EMBEDDED:
        yield _run_check(f"weights of {model.name}", lambda: _check_weight_file(model))


def _check_weight_file(model: ModelSection) -> str:
    """Name of the file with an embedded model's weights; raises AuditorError if it is not on this machine."""
    require_xllamacpp()
    return locate_weights(model.unprefixed_model).name


def _check_server(name: str, url: str) -> DoctorCheck:
    """Check that a TCP connection to a server can be opened."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_TIMEOUT_S):
            return DoctorCheck("ok", f"server of {name}", url)
    except (OSError, ValueError) as error:
        return DoctorCheck("FAIL", f"server of {name}", f"{url}: {error}", "Start the server, or correct api_base.")


def _check_trust(config: AuditConfig) -> Iterator[DoctorCheck]:
    """Check that keys go only to trusted servers, and warn of variables that would redirect requests."""
    for name in redirecting_variables():
        yield DoctorCheck("warn", name, "set, but ignored", "Set the server in the config, as api_base.")
    try:
        require_trust(config)
    except AuditorError as error:
        yield _make_failed_check("keys and hosts", error)
        return
    yield DoctorCheck("ok", "keys and hosts", describe_destinations(config))


def _check_secret_lengths(config: AuditConfig) -> Iterator[DoctorCheck]:
    """Warn of keys that are too short to be redacted."""
    if (warning := short_secrets_warning(config)) is not None:
        problem, _, advice = warning.removeprefix("Warning: ").partition(" How to fix: ")
        yield DoctorCheck("warn", "length of keys", problem, advice[0].upper() + advice[1:])


def _check_budget(config: AuditConfig) -> str:
    """Describe the budget; raises AuditorError if the price of a model is unknown."""
    require_prices(config.models_by_name.values(), config.limits)
    return f"${config.limits.budget_usd:g}; all prices are known"


def _check_prices(config: AuditConfig) -> DoctorCheck:
    """Warn of models whose price is not known, so that neither is what the audit costs."""
    unpriced_models = list_unpriced_models(config.models_by_name.values())
    if not unpriced_models:
        return DoctorCheck("ok", "prices", "all prices are known")
    return DoctorCheck("warn", "prices", f"unknown for {join_names(unpriced_models)}", price_advice(unpriced_models))


def _check_measures(config: AuditConfig, model: ModelSection) -> str:
    """The measures of log-probabilities that a model supports, in order of preference."""
    from auditor.models.continuation import check_scoring_weights

    assert config.probes.logprob is not None
    measures = supported_measures(model, config.probes.logprob.method)
    if LogprobMeasure.CONTINUATION in measures:
        check_scoring_weights(model)
    return ", else ".join(measure.value for measure in measures) or "not available from this provider"


def _check_encoder(config: AuditConfig) -> str:
    """The encoder for direct answers, or why none is needed; raises AuditorError if it cannot be loaded."""
    if direct_encoder_loader(config) is not None:
        return config.embedding.model
    reason = 'model = "none"' if config.embedding.model == NO_ENCODER else "no cell has two answers to compare"
    return f"not needed: {reason}"


def _check_probe_encoder(encoder: ProbeEncoder) -> str:
    """The name of a probe's encoder; raises AuditorError if it cannot be used."""
    encoder.check()
    return encoder.name


COLUMNS = (
    "",
    "model",
    "reachable",
    "key",
    "form",
    "temperature",
    "seed",
    "logprobs",
    "latency",
    "price (in / out, per million)",
)

EXPECTED_ANSWER_WORDS = 120
"""Words of an answer to a question without a limit of words, for the likely cost."""


def ping_config(path: Path, overrides: Sequence[str] = ()) -> tuple[PingPlan, list[PingResult]]:
    """Say what asking the models of a config costs at most, and ask them.

    Raises:
        AuditorError: the config cannot be used, a key would go to a server that the user has not allowed, or the
            first requests could exceed the budget. Nothing was sent then.
    """
    config = load_config(path, overrides)
    plan = plan_pings(config)
    print_message(describe_plan(plan))
    return plan, ping_models(config, plan, _print_progress if sys.stderr.isatty() else None)


def describe_plan(plan: PingPlan) -> str:
    """How many requests are sent at most, and what they likely cost and cost at most."""
    from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS  # loads litellm's client (0.3 s)

    n_models = sum(ping.call is not None for ping in plan.pings)
    unpriced = plan.unpriced_models
    without = f", without {', '.join(unpriced)}, whose price is unknown" if unpriced else ""
    return (
        f"Asking {n_models} of {pluralize(len(plan.pings), 'model')}: at most "
        f"{pluralize(plan.max_requests, 'request')} in all. Likely cost: ${estimate_likely_cost(plan):.4f}; at most "
        f"${plan.max_cost_usd:.4f}, if every test fails and every answer is as long as its limit{without}. Each model "
        f"gets at most {MAX_DISCOVERY_REQUESTS} requests that test what its server accepts, and one for "
        "log-probabilities if it may offer them."
    )


def estimate_likely_cost(plan: PingPlan) -> float:
    """Expected cost in US dollars of a plan whose servers accept the first request, without unpriced models."""
    likely_usd = 0.0
    for ping in plan.pings:
        for call in filter(None, (ping.call, ping.logprob_call)):
            words = float(call.max_words or EXPECTED_ANSWER_WORDS)
            planned = PlannedCalls(ping.model, call.purpose, ForecastRange.from_bounds(1), [call], words)
            row = build_forecast_row(planned, None, None)
            likely_usd += 0.0 if row.usd is None else row.usd.expected
    return min(likely_usd, plan.max_cost_usd)


def _print_progress(ping: PingResult) -> None:
    """Print that a model was asked."""
    print_message(f"{ping.state:<4}  {ping.model}: {pluralize(ping.requests, 'request')}")


def print_pings(results: list[PingResult]) -> None:
    """Print a row for each model, then what is wrong with those that cannot be used, and what the requests cost."""
    rows = [
        [
            result.state,
            result.model,
            _yes_or_no(result.reachable),
            result.key,
            result.form,
            result.temperature,
            result.seed,
            result.logprobs,
            None if result.latency_s is None else _format_latency(result.latency_s),
            result.price,
        ]
        for result in results
    ]
    print_table(COLUMNS, [[None if cell is None else redact(str(cell)) for cell in row] for row in rows])
    problems = [
        [result.model, redact(result.problem), redact(result.how_to_fix or "")] for result in results if result.problem
    ]
    if problems:
        print_table(["model", "problem", "how to fix"], problems)
    print_message(_describe_cost(results))


def pings_to_json(plan: PingPlan, results: list[PingResult]) -> dict[str, Any]:
    """The results for programs."""
    models = [
        {name: redact(value) if isinstance(value, str) else value for name, value in asdict(result).items()}
        for result in results
    ]
    return {
        "max_requests": plan.max_requests,
        "likely_cost_usd": estimate_likely_cost(plan),
        "max_cost_usd": plan.max_cost_usd,
        "models": models,
    }


def _format_latency(seconds: float) -> str:
    """A duration in seconds, or in milliseconds if it is short."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _yes_or_no(state: bool | None) -> str | None:
    """A state in words; None if it is not known."""
    return None if state is None else "yes" if state else "no"


def _describe_cost(results: list[PingResult]) -> str:
    """Number of requests sent, and their cost."""
    asked = [result for result in results if result.requests]
    known_usd = sum(result.cost_usd or 0.0 for result in asked)
    unknown = [result.model for result in asked if result.cost_usd is None]
    without = f", without {', '.join(unknown)}, whose price is unknown" if unknown else ""
    n_requests = sum(result.requests for result in asked)
    return f"{pluralize(n_requests, 'request')}, ${known_usd:.4f}{without}. Nothing was stored."
