"""Scripted servers, judges and tasks, synthetic audits and ways to run commands, shared by the tests."""
