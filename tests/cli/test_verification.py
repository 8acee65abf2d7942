"""`auditor verify` counts in words that fit one as well as many."""

from __future__ import annotations

import pytest

from auditor.cli.verification import _print_derivation, _print_verification
from auditor.reports.data.verification import AuditVerification
from auditor.run.rederivation import Rederivation
from auditor.storage.derived_rows import MAX_DIFFERENCES, RowCheck
from auditor.storage.hash_chain import ChainCheck


@pytest.mark.parametrize(
    ("n", "message"),
    [(1, "1 differs."), (2, "2 differ."), (MAX_DIFFERENCES + 5, "25 differ, of which the first 20 are")],
)
def test_rows_that_differ_are_counted(n: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    check = RowCheck(compared={"score": 30})
    for number in range(n):
        check.add("score", str(number), "is gone")
    _print_derivation(Rederivation(check))
    assert message in capsys.readouterr().err


def test_replaced_records_of_a_first_run_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Each stage of a run replaces the row of the audit, which is no sign that answers were replaced."""
    _print_verification(AuditVerification([], 0, ChainCheck(n_replaced=8)), is_unchanged=False)
    assert "by runs and commands, such as the stage of an audit: 8 records." in capsys.readouterr().err
