"""How often each printed 95% interval contains the truth: `python -m benchmarks.coverage` writes docs/coverage.md.

`worlds` simulates audits with known truth and imports nothing of `auditor`. `figures` binds each figure of a report to
the function that computes it, `registry` each JSON path of a report to a figure, and `runner` counts.
"""
