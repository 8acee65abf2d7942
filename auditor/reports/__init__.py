"""Reports: compute the figures of an audit from its stored records, and render them.

`data.report_source` reads an audit from storage once, `data.build` computes the report from it, and `data` has its
schema. `sections` has the sentences, as a `document`; `render` and `charts` draw it as HTML, Markdown, text and plots.
"""
