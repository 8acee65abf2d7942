"""Judges of traces: agreement, accuracy, bias, consistency, dependence, and the votes of panels."""
