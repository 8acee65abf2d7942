"""Documents that compare audits."""
