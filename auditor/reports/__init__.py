"""Reports: compute the figures of an audit from its stored records, and render them.

`report_source` reads an audit from storage once, and `build` computes the report from it. `report_schema` and
`measurement_schema` define the report as data. Each folder is one topic of the report: `section` computes it, `schema`
is its data, `wording` its sentences. `pages` renders the report as HTML, Markdown, tables and plots.
"""
