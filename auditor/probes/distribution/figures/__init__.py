"""Distributions of answers: models compared with the shares of people's answers."""
