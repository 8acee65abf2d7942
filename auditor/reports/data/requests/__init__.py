"""How models were asked: what their servers accept, forms of structured answers, and sampling settings."""
