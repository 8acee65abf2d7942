"""Plots as Vega-Lite specifications: plain dictionaries that contain their data.

`auditor.reports.render.figures` draws them. No module here knows a report: they take names and numbers.
"""
