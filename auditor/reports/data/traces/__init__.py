"""What models were asked and answered, one answer or one cell at a time."""
