"""How logical judges are."""
