"""What an audit costs, and what asking less saves."""
