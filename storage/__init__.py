"""Durable storage: one database for many audits, in which every answer that was paid for stays.

`ledger` keeps answers, `audits` who asks what, `results` what was read out of the answers.
"""

if __name__ != "auditor.storage":
    raise ImportError(f"import auditor.storage, not {__name__}")
