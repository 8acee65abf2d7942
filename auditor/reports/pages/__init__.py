"""Render a report: sentences, tables and plots as HTML, Markdown, CSV, LaTeX and image files."""
