"""Distributions of answers: distances, simple guesses, groups of people."""
