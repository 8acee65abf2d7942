"""Renderers: from documents to HTML, Markdown, plain text, CSV and LaTeX. They know no topic."""
