"""Running an audit, and opening one that was run: what the command line and Python programs call."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import platform
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor import bootstrap
from auditor.changes import change_note
from auditor.config import AuditConfig, load_config
from auditor.domain import ENGLISH, LANGUAGES, Cell, Survey, canonical_hash
from auditor.errors import ConfigError
from auditor.storage import audits, comparisons, ledger, moral, results, trials
from auditor.storage.database import Database, database_url, open_database, run_lock
from auditor.trust import destinations, require_trust

if TYPE_CHECKING:
    from auditor.agents.context import Context, Encoder, Progress
    from auditor.reports.gates import CheckResult
    from auditor.reports.model import Report

RECORDED = ("litellm", "instructor", "langgraph", "sentence-transformers", "torch", "xllamacpp", "numpy", "scipy")
NO_ENCODER = "none"
SEMANTIC_PROMPTS = (
    *("answer.structured", "answer.text", "rule.structured", "rule.text", "paraphrase", "consistency", "contradiction"),
)
NO_SURVEY = Survey(name="", title="", source="", wording="", scale=("", ""), cells=())


def storage_url(given: str | None = None, config: AuditConfig | None = None) -> str:
    """Where audits are: as given, else AUDITOR_STORAGE, else the config's word, else `auditor.db` in this folder."""
    return database_url(given, config.storage if config else None)


@dataclass(frozen=True, slots=True)
class AuditHandle:
    """An audit in a database; everything is read anew at each call."""

    name: str
    storage: str

    def report(self) -> Report:
        """The audit's report, as data."""
        from auditor.reports.build import build_report

        with open_database(self.storage, create=False) as db:
            return build_report(db, self.name)

    def frame(self, table: str, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A table as a data frame: `scores`, `traces`, `verdicts`, `conflicts`, … as stored, or one of the report."""
        from auditor.notebook import frame

        with open_database(self.storage, create=False) as db:
            return frame(db, self.name, table, library)

    def _repr_html_(self) -> str:
        from auditor.notebook import audit_html

        with open_database(self.storage, create=False) as db:
            return audit_html(db, self.name)

    def check(self, **changes: float | bool | None) -> CheckResult:
        """Whether the audit meets thresholds: those of its config, with changes such as `min_pearson=0.6`.

        The result is true where everything was passed, and its text names what was not; see `CheckSection`.
        """
        from auditor.reports.build import build_report
        from auditor.reports.gates import check, thresholds

        with open_database(self.storage, create=False) as db:
            audit = audits.get(db, self.name)
            config = AuditConfig.model_validate_json(audit.config) if audit.config else None
            return check(build_report(db, self.name), thresholds(config, changes))

    def scores(self) -> dict[tuple[str, str, str, str], float | None]:
        """Scores in [-1, 1] by (model, country, topic, method); None where no sample was usable."""
        with open_database(self.storage, create=False) as db:
            audit = audits.get(db, self.name)
            return {(s.model, *s.cell, s.method): s.score for s in results.scores(db, audit.id)}


def open_audit(name: str, *, storage: str | None = None) -> AuditHandle:
    """Open an audit that was run or imported.

    Args:
        name: the audit's name.
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` when not given.

    Raises:
        StorageError: no such database or audit.
    """
    url = storage_url(storage)
    with open_database(url, create=False) as db:
        audits.get(db, name)
    return AuditHandle(name, url)


def run_audit(
    config: AuditConfig | str | Path,
    *,
    storage: str | None = None,
    progress: Progress | None = None,
    signals: bool = False,
) -> AuditHandle:
    """Run an audit to its end; run it again to resume, or to ask only what is not yet recorded.

    Args:
        config: a configuration, or the path of one.
        storage: database URL, before AUDITOR_STORAGE and the config's own.
        progress: is told of every stage and answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the run with everything saved; only from the main thread.

    Raises:
        ConfigError, SurveyError, ModelSetupError, StorageError: what is wrong, and how to mend it.
        Interrupted: a signal stopped the run.
    """
    bootstrap.prepare()
    if not isinstance(config, AuditConfig):
        config = load_config(config)
    survey = planned_survey(config)
    from auditor.agents.context import Silent
    from auditor.agents.logic.items import check_items

    check_items(config, survey)
    if config.probes.semantic:
        from auditor.agents.semantic.questions import planned_questions

        planned_questions(config.probes.semantic)
    url = storage_url(storage, config)
    check_keys(config)
    require_trust(config)
    progress = progress or Silent()
    with open_database(url) as db, run_lock(db, config.name):
        progress.noted(destinations(config))
        if note := change_note(audits.find(db, config.name), config, fingerprint(config)):
            progress.noted(note)
        audit = audits.save(
            db,
            name=config.name,
            config=config.model_dump_json(),
            config_hash=fingerprint(config),
            survey=survey,
            environment=environment(),
        )
        asyncio.run(_run(config, survey, audit, db, progress, signals))
    return AuditHandle(config.name, url)


def planned_survey(config: AuditConfig) -> Survey:
    """The part of the survey that a config asks about, in its groups and words; without cells where it names none.

    Raises:
        ConfigError, SurveyError, ImportFileError: it cannot be asked about so; the message names what is missing.
    """
    from auditor.agents.languages import check_languages, used_languages
    from auditor.agents.rephrasing import rephrased
    from auditor.surveys import apply_nonresponse, grouped, load_survey, select
    from auditor.surveys.languages import native_languages

    section = config.survey
    if section is None:
        return NO_SURVEY
    survey = grouped(load_survey(section.source), section.regions)
    chosen = select(survey, section.countries, section.topics)
    chosen = replace(chosen, native={country: native_languages(country) for country in chosen.countries})
    chosen = apply_nonresponse(chosen, section.nonresponse, section.source)
    asked = rephrased(chosen, section.rephrase, used_languages(config, chosen))
    check_languages(config, asked)
    return asked


def planned_cells(survey: Survey) -> list[Cell]:
    """The cells that models are asked about: those that people were asked about."""
    return [cell.cell for cell in survey.cells if cell.score is not None]


def check_keys(config: AuditConfig) -> None:
    """Raise ConfigError for the first key that the environment does not have."""
    from auditor.config import resolve_key

    for model in [*config.models, *config.judge_models]:
        if model.api_key is None:
            continue
        try:
            resolve_key(model.api_key)
        except ConfigError as error:
            raise ConfigError(f"model '{model.name}': {error.message}", error.mend) from None


def fingerprint(config: AuditConfig) -> str:
    """Names everything that decides an audit's calls and how they are read: config, prompts and program.

    Raises:
        ConfigError: a judge's own prompt cannot be used.
    """
    from auditor.agents.calls import review_prompt
    from auditor.prompts import load_prompt

    folders = sorted(LANGUAGES) if config.languages != (ENGLISH,) else [ENGLISH]
    prompts = [load_prompt(f"direct.{config.direct.mode}", f) for f in folders]
    prompts += [load_prompt(f"repair.{config.direct.mode}")] if config.direct.repair else []
    prompts += [load_prompt(name) for name in ("review", "review.shorter", "review.guess", "review.rewrite")]
    prompts += map(review_prompt, config.judge_models)
    if config.probes.semantic:
        prompts += [load_prompt(f"semantic.{name}") for name in SEMANTIC_PROMPTS]
    told = [[p.id, p.system, p.user] for p in prompts]
    return canonical_hash(
        [config.hash, metadata.version("auditor"), told, *_weighed(config), *_compared(config, folders)]
    )


def _weighed(config: AuditConfig) -> list[object]:
    """What decides the log-probabilities, beside the config."""
    from auditor.prompts import load_prompt
    from auditor.prompts.contrasts import load_contrasts

    return (
        [load_contrasts().model_dump(mode="json"), load_prompt("logprob.choice").user] if config.probes.logprob else []
    )


def _compared(config: AuditConfig, folders: list[str]) -> list[object]:
    """What decides the comparisons, beside the config: their words, and the file of items where there is one."""
    from auditor.prompts import load_prompt
    from auditor.prompts.comparing import load_comparing

    probe = config.probes.logic
    if probe is None:
        return []
    template = "logic.letter" if probe.answer == "probability" else f"logic.{'cot' if probe.cot else 'structured'}"
    prompts = [load_prompt(template, f) for f in folders]
    told = [[p.system, p.user, load_comparing(p.language).model_dump(mode="json")] for p in prompts]
    file = Path(probe.items)
    return [told, hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None]


def environment() -> dict[str, str]:
    """Versions of what has a part in the result."""
    found = {"auditor": metadata.version("auditor")}
    found |= {"python": platform.python_version(), "platform": platform.platform()}
    for name in RECORDED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


async def _run(
    config: AuditConfig, survey: Survey, audit: audits.Audit, db: Database, progress: Progress, signals: bool
) -> None:
    from auditor.agents.context import Interrupted
    from auditor.agents.driving import drive

    async with surroundings(config, survey, audit, db, progress, _encoder(config)) as context:
        try:
            with _stopped_by_signals(context.stop) if signals else _nothing():
                await drive(context, db.path, _thread(audit))
        except asyncio.CancelledError:
            if context.stop.is_set():  # the second signal: whoever sent it does not want to wait for what is in flight
                raise Interrupted("the run was stopped at once; everything that had arrived is saved.") from None
            raise


@asynccontextmanager
async def surroundings(
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    progress: Progress,
    encoder: Callable[[], Encoder] | None = None,
) -> AsyncIterator[Context]:
    """What nodes work in, with a gateway to the audit's models that is closed at the end."""
    from auditor.agents.context import Context
    from auditor.models.gateway import Gateway
    from auditor.replaying import Replaying, load_records

    models = {m.name: m for m in [*config.models, *config.judge_models]}
    records = load_records(config.models, survey)
    models = {name: m for name, m in models.items() if name not in records}
    stop = threading.Event()
    spent = _spent(db, audit.id)
    gateway = Gateway(models.values(), config.limits, spent_usd=spent, seed=config.seed, stop=stop)
    try:
        yield Context(
            config=config,
            survey=survey,
            audit_id=audit.id,
            cells=planned_cells(survey),
            db=db,
            gateway=Replaying(gateway, records),
            encoder=encoder,
            moral_encoder=_moral_encoder(config),
            progress=progress,
            stop=stop,
        )
    finally:
        await gateway.close()


def resume_after_review(name: str, *, storage: str | None = None) -> int:
    """Tell an audit that waits for people what they have decided; with nothing left open, it ends.

    Args:
        name: the audit's name; one that does not wait stays as it is.
        storage: database URL.

    Returns:
        Conflicts that are still open.
    """
    from auditor.reports.status import status_of

    bootstrap.prepare()
    with open_database(storage_url(storage), create=False) as db:
        audit = audits.get(db, name)
        left: int = status_of(db, audit)["open"]
        if audit.stage == audits.PERSON and audit.config is not None:
            asyncio.run(_resume(AuditConfig.model_validate_json(audit.config), audit, db, left))
        return left


async def _resume(config: AuditConfig, audit: audits.Audit, db: Database, left: int) -> None:
    from auditor.agents.context import Context, Nobody
    from auditor.agents.driving import resume

    survey = audits.survey_of(db, audit)
    context = Context(config, survey, audit.id, planned_cells(survey), db, gateway=Nobody(), encoder=None)
    waited = await resume(context, db.path, _thread(audit), left)
    if not waited and left == 0:  # its memory is gone, as after a move of the database alone
        audits.set_stage(db, audit.id, audits.DONE)


def _thread(audit: audits.Audit) -> str:
    return f"{audit.id}/{audit.created_at}"


def _moral_encoder(config: AuditConfig) -> Callable[[], Encoder] | None:
    """The encoder of the probe `semantic`, checked now and loaded on first use; None where it is not asked for."""
    probe = config.probes.semantic
    if probe is None:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder
    from auditor.models.rivals import check_rivals

    name = probe.encoder or config.embedding.model
    check_encoder(name)
    check_rivals(probe.rivals)
    return functools.cache(lambda: load_encoder(name))


def _encoder(config: AuditConfig) -> Callable[[], Encoder] | None:
    """The encoder, loaded on first use; that it can be loaded is checked now, before anything is asked."""
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder

    check_encoder(config.embedding.model)
    return functools.partial(load_encoder, config.embedding.model)


def _spent(db: Database, audit_id: int) -> float:
    traces = [k for t in results.traces(db, audit_id) for k in (t.key, t.repair_key) if k]
    verdicts = [key for v in results.verdicts(db, audit_id) for key in (v.key, v.again_key) if key]
    contrasts = [k for c in results.contrasts(db, audit_id) for k in (c.key, c.key_swapped) if k]
    compared = [c.key for c in comparisons.comparisons(db, audit_id) if c.key]
    others = [x.key for load in (trials.guesses, trials.restatements) for x in load(db, audit_id) if x.key]
    others += [x.key for load_ in (trials.trials, trials.contests) for x in load_(db, audit_id) if x.key]
    return ledger.spent(db, [*traces, *contrasts, *verdicts, *compared, *others, *moral.call_keys(db, audit_id)])


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """The first signal drains, the second stops at once; what arrived is recorded either way."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in wanted:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
