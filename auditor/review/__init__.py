"""Reviewing without a screen: what a person is shown, what they say, and what can be learnt from it.

The terminal app and its plain twin are two faces of `desk`; everything that decides, stores or counts is here.
"""
