"""From figures to words, tables and plots: HTML, Markdown, and plots as files."""
