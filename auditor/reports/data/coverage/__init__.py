"""Coverage: planned against recorded answers and verdicts, and the reasons for missing ones."""
