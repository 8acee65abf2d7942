"""What is done with compared items: repairing the relation, ranking by it, data to learn from."""
