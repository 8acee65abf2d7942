"""From records to figures, and from figures to pages.

`source` reads everything once, `build` makes the report of it, `model` and `measures` are the report as data. Each
folder is a topic: `section` computes it, `parts` is its data, `words` says it. `pages` shows it in every form.
"""
