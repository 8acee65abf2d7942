"""An audit in which every external text tries to inject markup into the report."""

from __future__ import annotations

from datetime import UTC, datetime

from auditor.config import AuditConfig, DirectProbe, ModelSection, Probes, SurveySection
from auditor.domain import (
    AnswerForm,
    Capability,
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    Decision,
    Outcome,
    Rating,
    Survey,
    SurveyCell,
    Trace,
    canonical_json,
)
from auditor.reports.data.build import build_report
from auditor.reports.data.failures import FailureGroup, FailuresReport, UnusableModel
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import CapabilityReportRow, RequestsReport
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.stored_rows import add_rating

EVIL = (
    "</style></title><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    '" onmouseover="alert(4)" \' [/INST] [bold red]x[/] {{ 7 * 7 }} {% raw %} {# #} </td></table> <!-- --> ]]> &lt;'
    "\x1b[2J\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202edesrever\u202c \u2066x \u200bzero \x00nul \x9b31m"
    "\n# heading\n1. list\n- item\n> quote\n```\nfence\n    indented\n| a | b |\n|---|---|\nSetext\n======\n"
    "[link](http://evil.example) ![pic](http://evil.example/x.png) <http://evil.example> www.evil.example "
    "https://evil.example **bold** __bold__ _it_ *it* ~~gone~~ `code` @everyone a@evil.example &copy; \\"
)
NAME = "evil <b>&amp;\"'` |\u202e\x1b[31m*_[x](http://evil.example)"


def hostile_report(db: Database) -> Report:
    """A report whose names, countries, topics, reasoning, notes, survey texts and providers' words are all hostile."""
    names = [f"{NAME} {i}" for i in range(2)]
    cells = [Cell(f"{NAME} land {i}", f"{NAME} topic {j}") for i in range(3) for j in range(2)]
    config = AuditConfig(
        name="hostile",
        survey=SurveySection(source="x"),
        models=[ModelSection(name=n, model=f"evil/{i}<script>alert(5)</script>") for i, n in enumerate(names)],
        probes=Probes(direct=DirectProbe(samples=1)),
    )
    survey = Survey(
        "s<script>", EVIL, EVIL, EVIL, (EVIL, EVIL), tuple(SurveyCell(c, i / 9) for i, c in enumerate(cells))
    )
    saved = canonical_json(config.model_dump(mode="json"))
    environment = {"<script>alert(6)</script>": EVIL}
    audit = audits.save_audit(
        db, name="hostile", config=saved, config_hash=config.hash, survey=survey, environment=environment
    )
    scores = [(n, c, (i - j) / 6) for j, n in enumerate(names) for i, c in enumerate(cells)]
    save_records(db, audit.id, [Trace(n, c, 0, Outcome.OK, s, EVIL) for n, c, s in scores])
    save_records(db, audit.id, [CellScore(n, c, "direct", s, None, 1, 1) for n, c, s in scores])
    conflict = Conflict(cells[0], names[0], names[1], 0.0, -1 / 6, ConflictKind.GRADIENT)
    results.replace_conflicts(db, audit.id, [conflict])
    decided_at = datetime(2026, 1, 1, tzinfo=UTC)
    rating = Rating(cells[0], names[0], names[1], 0.0, -1 / 6, NAME, Decision.LEFT, decided_at, note=EVIL)
    add_rating(db, audit.id, rating)
    audits.set_stage(db, audit.id, audits.FINISHED)
    return build_report(db, "hostile").model_copy(update=_hostile_words_of_providers(names))


def _hostile_words_of_providers(names: list[str]) -> dict[str, object]:
    """What providers' servers said: reasons of failures, and evidence of what they accept."""
    group = FailureGroup(
        name=names[0], model=NAME, purposes=["direct"], outcome="client_error", status=400, message=EVIL, requests=2,
        unusable=1, first_at="1", last_at="2", how_to_fix="Wait.", payload=None,
    )  # fmt: skip
    unusable = UnusableModel(name=names[1], is_judge=False, planned=6, reason=EVIL, how_to_fix="")
    capability = CapabilityReportRow(
        name=names[0], capability=Capability(AnswerForm.TOOL, (NAME,), (NAME,)), evidence=EVIL, litellm_version="1",
        created_at="1",
    )  # fmt: skip
    return {
        "failures": FailuresReport(
            groups=[group], not_listed=0, requests_not_listed=0, unusable=1, unusable_models=[unusable]
        ),
        "requests": RequestsReport(capabilities=[capability], forms=[], form_split=[]),
    }
