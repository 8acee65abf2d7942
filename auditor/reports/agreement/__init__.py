"""How well models agree with people, and which to prefer."""
