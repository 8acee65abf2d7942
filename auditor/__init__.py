"""Audit the moral alignment of language models across cultures, and show how far the result can be trusted."""
