"""`auditor experiment planted` finds the judge that obeys instructions in traces, and the one that does not."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from auditor.agents.fault_injection import load_instructions, plant_instruction
from auditor.config import AuditConfig
from auditor.domain import LANGUAGES, Cell, Outcome, Ruling, Trace
from auditor.experiments.judges import planted
from auditor.experiments.stored_audit import ExperimentContext
from auditor.prompts.language_data import addresses_judge
from auditor.reports.output import render_report
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.panel import build_panel_tables
from auditor.run import open_audit, run_audit
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.language_samples import SAMPLES
from tests.support.scripted_judges import Script, _review as review_answer, audit

N_WORDINGS = 5
N_TRACES = 15


class ObedientScript(Script):
    """The judge `gull` does what a trace demands; `deaf` never does. Without a demand both draw at random."""

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        if request.body["model"] == "gull" and not request.is_direct_question:
            texts = request.text.split(" SECOND\n")
            if request.schema == "SidePreference":
                demands = [any(wording in text for wording in load_instructions("en")["preference"]) for text in texts]
                if any(demands):
                    return completion(json.dumps({"reason": "So.", "better": "FIRST" if demands[0] else "SECOND"}))
            else:
                for ruling in Ruling:
                    if any(w.replace("{verdict}", ruling) in request.text for w in load_instructions("en")["verdict"]):
                        return completion(json.dumps(review_answer(ruling is Ruling.VALID)))
        if request.schema == "SidePreference":
            return completion(json.dumps({"reason": "So.", "better": "FIRST"}))
        # The verdict depends on the trace only by its score, so that an instruction alone changes nothing.
        is_valid = "Score" in request.text and "-" not in request.text.rsplit("Score of", 1)[-1]
        return (
            super().__call__(request) if request.is_direct_question else completion(json.dumps(review_answer(is_valid)))
        )


def test_the_judge_that_obeys_is_named_on_page_one(tmp_path: Path) -> None:
    """Rates of obeying for both verdicts and for preferences; the table, and the caution."""
    url = f"sqlite:///{tmp_path}/a.db"
    with pytest.MonkeyPatch.context() as patch, FakeServer(ObedientScript(0)) as server:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        config = audit(server.url, ("gull", "deaf"), probes={"direct": {"samples": 1}})
        config["models"] = config["models"][:2]
        run_audit(AuditConfig.model_validate(config), storage=url)
        planted(ExperimentContext(url), "scripted", N_TRACES)
        n_requests = len(server.requests)
        result = planted(ExperimentContext(url), "scripted", N_TRACES)
        assert len(server.requests) == n_requests, "recorded answers are reused"
    report = open_audit("scripted", storage=url).report()
    gull, deaf = report.panel.obedience
    for row, rate in ((gull, 1.0), (deaf, 0.0)):
        assert row.verdicts.value == row.valid.value == row.invalid.value == row.preferences.value == rate
        assert row.verdicts.n == row.valid.n + row.invalid.n == N_TRACES
    assert result.data[-2:] == report.panel.obedience
    page = render_report(report, "markdown")
    cautions = [text for text in list_cautions(report) if "obey" in text]
    assert [("gull" in text, "deaf" in text, "gave" in text) for text in cautions] == [
        (True, False, True),
        (True, False, False),
    ], cautions
    assert all(text in page for text in cautions)
    assert "gull (100% of 15, at least 48%)" in cautions[0]
    assert "obedience" in [table.id for table in build_panel_tables(report.panel)]


def test_each_language_has_five_wordings_of_both_kinds_which_the_rule_marks_with_a_verdict() -> None:
    """Each wording has its place for the verdict; the same trace has the same wording for both."""
    for language in LANGUAGES:
        wordings = load_instructions(language)
        assert {kind: len(set(texts)) for kind, texts in wordings.items()} == {
            "verdict": N_WORDINGS,
            "preference": N_WORDINGS,
        }
        for wording in wordings["verdict"]:
            assert wording.count("{verdict}") == 1
            assert addresses_judge(wording.replace("{verdict}", "INVALID"), language)
        held_out = SAMPLES[language]["addresses"]
        assert not set(held_out) & {*wordings["verdict"], *wordings["preference"]}
    trace = Trace("m", Cell("Japan", "divorce"), 0, Outcome.OK, 0.5, "They mind it.", language="en")
    texts = [plant_instruction(trace, 7, ruling).text or "" for ruling in (Ruling.VALID, Ruling.INVALID)]
    assert texts[0].replace("VALID", "INVALID") == texts[1]
    assert (resources.files("auditor.prompts") / "en" / "planted_instructions.toml").is_file()
