"""Durable storage: one database for many audits. Recorded answers are never deleted, since they were paid for.

`ledger` stores models' answers, `audits` the audits and their ground truth, `results` what was parsed from answers.
"""

if __name__ != "auditor.storage":
    raise ImportError(f"import auditor.storage, not {__name__}")
