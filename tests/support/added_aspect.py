"""Declare one more review aspect, run a small scripted audit, and print where the aspect appears, as JSON.

    python -m tests.support.added_aspect STORAGE FOLDER

The database may hold an audit `population` that was made without the aspect. Schemas are created when their modules
are imported, so the aspect is declared before any other module of auditor is imported, in a process of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from auditor.domain import decisions
from auditor.domain.decisions import AspectQuestion, ReviewAspect

ASPECT = ReviewAspect(
    "plain_speech",
    label="plainness",
    survey=AspectQuestion("plainly_said", "would a child understand it", "Plainness of speech"),
)


def run_scripted_audit(storage: str) -> list[dict[str, Any]]:
    """Run an audit on a scripted server; return the bodies of the requests for a verdict."""
    from auditor.run import run_audit
    from tests.support.audit_configs import config
    from tests.support.fake_server import FakeServer

    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["homosexuality", "divorce", "abortion"]}
    with FakeServer() as server:
        run_audit(config(server.url, survey=survey, conflicts={"threshold": 0.05}), storage=storage)
        return [request.body for request in server.requests if request.schema == decisions.SURVEY_REVIEW]


def describe_results(storage: str, folder: Path) -> dict[str, Any]:
    """Stored verdicts, reports, exported rows, and the evidence in the terminal."""
    from auditor.exports.inspect_logs import build_sample
    from auditor.exports.tables import export_tables
    from auditor.exports.traces import TraceRecord
    from auditor.models.answer_schemas import AnswerReview
    from auditor.reports.data.report_schema import render_json_schema
    from auditor.reports.output import render_report
    from auditor.review.session import ReviewSession
    from auditor.run import open_audit
    from auditor.storage import audits, results
    from auditor.storage.database import open_database
    from auditor.tui.panels import render_evidence

    report = open_audit("scripted", storage=storage).report()
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        verdicts = results.load_verdicts(db, audit.id)
        export_tables(db, "scripted", folder, "jsonl")
        session = ReviewSession(db, audit, "ada")
        items = [session.load_item(key) for key in session.conflict_keys()]
        for item in items:
            session.reveal(item)
        evidence = [render_evidence(session.load_item(item.key)).plain for item in items]
        trace = next(trace for trace in results.load_traces(db, audit.id) if trace.score is not None)
    judged = [verdict for verdict in verdicts if (verdict.model, verdict.cell) == (trace.model, trace.cell)]
    sample = build_sample(TraceRecord(trace, None, judged, (), None, None), "openai/scripted")
    return {
        "task_schema": list(AnswerReview.model_fields),
        "stored": [dict(verdict.aspects) for verdict in verdicts],
        "report": report.model_dump(mode="json")["peer_agreement"],
        "report_schema": json.loads(render_json_schema())["$defs"]["PeerAgreementRow"]["required"],
        "markdown": render_report(report, "markdown"),
        "earlier": open_audit("population", storage=storage).report().model_dump(mode="json")["peer_agreement"],
        "exported": [json.loads(line) for line in (folder / "verdict.jsonl").open(encoding="utf-8")],
        "inspect": [score.metadata for name, score in (sample.scores or {}).items() if name.startswith("judge:")],
        "evidence": evidence,
    }


if __name__ == "__main__":
    decisions.REVIEW_ASPECTS += (ASPECT,)
    requests = run_scripted_audit(sys.argv[1])
    print(json.dumps({"requests": requests, **describe_results(sys.argv[1], Path(sys.argv[2]))}))
