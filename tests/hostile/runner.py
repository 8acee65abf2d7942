"""Run cases in this process, with the real gateway, batches and ledger, and one database for each case."""

from __future__ import annotations

import asyncio
import shutil
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.call_runner import CallRecorder, RecordingClient
from auditor.config import AuditConfig, BatchSection, LimitsSection, ModelSection, Price
from auditor.domain import Answer, Call, Cell, LogprobMeasure, Message, Purpose
from auditor.errors import AuditorError
from auditor.models.capability_discovery import initial_capability
from auditor.models.capability_registry import MemoryCapabilityStore
from auditor.models.gateway import Gateway
from auditor.models.logprobs import measure_params
from auditor.run import load_planned_survey
from auditor.run.batches.batching_client import BatchingClient
from auditor.storage import audits, hash_chain
from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import table_of
from tests.hostile.axes import BATCHES, ECHO
from tests.hostile.corpus import Case
from tests.hostile.keys import leaks_in, leaks_in_folder
from tests.hostile.server import HostileServer
from tests.support import preloaded_imports  # noqa: F401 - slow imports must not block the event loop later
from tests.support.audit_configs import KEY_VARIABLE, config
from tests.support.hang_limit import hang_limit
from tests.support.refusals import end_repeated_refusals

MODELS = {
    "openai": "openai/hostile", "anthropic": "anthropic/claude-sonnet-4-5", "gemini": "gemini/gemini-2.5-flash",
    "bedrock": "bedrock/anthropic.claude-3-haiku-20240307-v1:0",
    "mistral": "mistral/mistral-small-latest", "groq": "groq/llama-3.3-70b-versatile",
    "openrouter": "openrouter/openai/gpt-4o", ECHO: "hosted_vllm/hostile", "openai-batch": "openai/hostile",
    "anthropic-batch": "anthropic/hostile",
}  # fmt: skip
PRICE = Price(input=10.0, output=100.0, cached_input=1.0)
"""US dollars per million tokens: 100 prompt tokens and 20 completion tokens cost $0.003, in a batch half of that."""
MAX_TOKENS = 50
QUESTION_CHARS = 400
ENDS = (" always justifiable", " never justifiable")
ATTEMPTS = 2
SHORT_S, LONG_S = 20.0, 600.0
"""Time limits of a request: for servers that never reply, and for all others.

Half of it is the limit of connecting, which a busy machine must not exceed.
"""
MAX_WAIT_S = 5.0
"""Longest wait that a provider may ask for; below the deadline of a call."""
DEFAULT_CONCURRENCY = 12
CELL = Cell("Germany", "divorce")
HEARTBEAT_S = 0.1
CRASHES = "crashes"
"""Outcome of a case that raised another exception than `AuditorError`."""


@dataclass
class Result:
    """Result of a case.

    Attributes:
        outcome: of the parsed trace or of the measurement; `stops` if the run stopped.
        usd: cost of all attempts in US dollars, as recorded.
        estimated: number of attempts whose recorded cost is estimated.
        text: all that a user could be shown: the answer, errors, the message that stopped the run.
        broken: breaks in the hash chain of the database.
        leaks: places that contain the key.
    """

    outcome: str
    requests: int
    attempts: int
    usd: float
    estimated: int
    exit: int
    text: str
    answer: Answer | None
    score: float | None
    broken: Sequence[object] = ()
    leaks: list[str] = field(default_factory=list)


def section_of(case: Case, server: HostileServer) -> ModelSection:
    return ModelSection(
        name=case.id, model=MODELS[case.protocol], api_base=server.url_of(case), api_key=f"os.environ/{KEY_VARIABLE}",
        timeout_s=SHORT_S if case.choice["timing"] == "hang" else LONG_S, price=PRICE,
    )  # fmt: skip


def call_of(case: Case, section: ModelSection, sample: int = 0) -> Call:
    params = {"temperature": 0.5, "max_tokens": MAX_TOKENS}
    if case.protocol == ECHO:
        return Call(
            section.name, section.model, (Message("user", beginning_of(case)),), Purpose.LOGPROB, sample,
            measure_params(LogprobMeasure.ECHO), server=section.api_base, measure=LogprobMeasure.ECHO,
            continuations=ENDS, cell=CELL,
        )  # fmt: skip
    return Call(
        section.name, section.model, (Message("user", question_of(case)),), Purpose.DIRECT, sample, params,
        schema="MoralJudgement", max_words=40, server=section.api_base, cell=CELL,
    )  # fmt: skip


def question_of(case: Case) -> str:
    """Text of the question for a chat, 400 characters long."""
    return f"[case {case.id}] How justifiable is divorce in Germany?".ljust(QUESTION_CHARS, ".")


def beginning_of(case: Case) -> str:
    """Beginning of the sentence for a completions endpoint, with a letter that encodings encode differently."""
    return f"[case {case.id}] In Österreich, divorce is"


@dataclass(frozen=True)
class CaseResults:
    """Results of cases that ran together.

    Attributes:
        results: by the id of the case.
        spent_usd: US dollars that the gateway and the batches charged to their common budget.
    """

    results: dict[str, Result]
    spent_usd: float


def run_cases(
    cases: Iterable[Case],
    folder: Path,
    *,
    large: bool = False,
    concurrency: int = DEFAULT_CONCURRENCY,
    budget_usd: float | None = None,
) -> CaseResults:
    """Run cases, several at a time.

    Args:
        folder: where the databases are created.
        large: whether texts of private-key headers have a megabyte.
        at_once: how many run at the same time.
        budget_usd: budget of all cases together; None for no limit.
    """
    by_id = {case.id: case for case in cases}
    limits = LimitsSection(max_attempts=ATTEMPTS, deadline_s=LONG_S, budget_usd=budget_usd, max_retry_wait_s=MAX_WAIT_S)
    with HostileServer(by_id, large=large) as server:
        return asyncio.run(_run_all(list(by_id.values()), server, folder, limits, concurrency))


async def _run_all(
    cases: list[Case], server: HostileServer, folder: Path, limits: LimitsSection, concurrency: int
) -> CaseResults:
    sections = {case.id: section_of(case, server) for case in cases}
    template = _template(folder / "template.db", list(sections.values()))
    gateway = Gateway(sections.values(), limits, capability_store=_store_of(cases, sections))
    semaphore = asyncio.Semaphore(concurrency)

    async def run_in_turn(case: Case) -> Result:
        async with semaphore:
            return await _run(case, sections[case.id], gateway, server, template)

    cases.sort(key=lambda case: case.choice["timing"] != "hang")  # the others run while these wait
    try:
        with end_repeated_refusals(ATTEMPTS):
            async with _watch_for_hangs():
                results = await asyncio.gather(*map(run_in_turn, cases))
    finally:
        await gateway.close()
    by_id = dict(zip([case.id for case in cases], results, strict=True))
    return CaseResults(by_id, gateway.budget.spent_usd)


def _store_of(cases: list[Case], sections: dict[str, ModelSection]) -> MemoryCapabilityStore:
    """The capabilities that an earlier run has found out, for cases whose contact is `known`."""
    known_calls = [call_of(case, sections[case.id]) for case in cases if case.contact == "known"]
    return MemoryCapabilityStore(
        {call.capability_key: initial_capability(call.model, call.server) for call in known_calls}
    )


@asynccontextmanager
async def _watch_for_hangs() -> AsyncIterator[None]:
    """Fail if something blocks the event loop: a search of a large text that it is not meant for takes years."""

    async def beat(restart: Callable[[], None]) -> None:
        while True:
            restart()
            await asyncio.sleep(HEARTBEAT_S)

    with hang_limit() as restart:
        task = asyncio.create_task(beat(restart))
        try:
            yield
        finally:
            task.cancel()


def _template(path: Path, sections: list[ModelSection]) -> tuple[Path, AuditConfig]:
    """Create a database with an audit without calls; copying it is quicker than creating one for each case."""
    settings = config("http://127.0.0.1:9/v1", judges=[], limits={"max_attempts": ATTEMPTS, "deadline_s": LONG_S})
    settings = settings.model_copy(
        update={"models": sections, "batch": BatchSection(poll_s=0.02, quiet_s=0.01, least=1)}
    )
    survey = load_planned_survey(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_database(f"sqlite:///{path}") as db:
        audits.save_audit(db, name=settings.name, config=None, config_hash=None, survey=survey, environment={})
    return path, settings


async def _run(
    case: Case, section: ModelSection, gateway: Gateway, server: HostileServer, template: tuple[Path, AuditConfig]
) -> Result:
    """Run one case with its own database, and return its result."""
    folder = template[0].with_name(case.id)
    folder.mkdir()
    path = folder / "audits.db"
    await asyncio.to_thread(shutil.copy, template[0], path)
    answer: Answer | None = None
    error: Exception | None = None
    db = await asyncio.to_thread(open_database, f"sqlite:///{path}", create=False)
    try:
        async with _recording_client(case, gateway, template[1], db) as client:
            try:
                for sample in range(2 if case.contact == "later" else 1):
                    answer = await client.complete(call_of(case, section, sample))
            except Exception as raised:  # noqa: BLE001 - an unexpected exception is reported as a fault of its case
                answer, error = None, raised
        result = await asyncio.to_thread(_collect_result, case, answer, error, db)
    finally:
        await asyncio.to_thread(db.close)
    result.requests = server.requests_of(case)
    await asyncio.to_thread(_record_leaks, result, folder)
    return result


def _record_leaks(result: Result, folder: Path) -> None:
    """Record in the result where the key was found, and delete the folder."""
    shown = leaks_in(result.text.encode(errors="backslashreplace"))
    result.leaks = leaks_in_folder(folder) + [f"a text: {form!r}" for form in shown]
    shutil.rmtree(folder)


@asynccontextmanager
async def _recording_client(
    case: Case, gateway: Gateway, settings: AuditConfig, db: Database
) -> AsyncIterator[RecordingClient]:
    """Yield a client that sends a case's calls, singly or in batches, and records them."""
    recorder = CallRecorder(db, audits.get_audit(db, settings.name).id, "run")
    if case.protocol not in BATCHES:
        yield RecordingClient(gateway, recorder)
        return
    batches = BatchingClient(gateway, settings, recorder, threading.Event(), lambda _: None)
    try:
        yield RecordingClient(batches, recorder)
    finally:
        await batches.close()


def _collect_result(case: Case, answer: Answer | None, error: Exception | None, db: Database) -> Result:
    """Result of a case from its last answer or error and from its database."""
    table = table_of(StoredAttempt)
    with db.read() as connection:
        rows = [dict(row) for row in connection.execute(select(table)).mappings()]
    outcome, score = "stops" if error is None or isinstance(error, AuditorError) else CRASHES, None
    if answer is not None:
        outcome = answer.outcome.value
        if case.protocol != ECHO:
            trace = parse_trace(answer, case.id, CELL, 0, "structured")
            outcome, score = trace.outcome.value, trace.score
    shown: list[str | None] = ["".join(_describe_error(error))]
    if answer:
        shown = [answer.text, answer.error, answer.served_model, answer.finish_reason]
    return Result(
        outcome=outcome, requests=0, attempts=len(rows), usd=sum(row.get("cost_usd") or 0.0 for row in rows),
        estimated=sum(bool(row.get("estimated")) for row in rows),
        exit=error.exit_code if isinstance(error, AuditorError) else int(error is not None),
        text="\n".join(str(text) for text in [*shown, *(row["error"] for row in rows)] if text is not None),
        answer=answer, score=score, broken=hash_chain.verify_chain(db).breaks,
    )  # fmt: skip


def _describe_error(error: Exception | None) -> list[str]:
    """Lines that a user would be shown: one message for an `AuditorError`, else a traceback."""
    return [str(error)] if isinstance(error, AuditorError) else traceback.format_exception(error)
