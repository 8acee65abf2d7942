"""What must hold of an audit, and whether it does."""
