"""From records to figures, and from figures to pages: reports, comparisons, gates, and what each of them says."""
