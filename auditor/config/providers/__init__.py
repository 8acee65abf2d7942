"""What is known of providers before they are asked: the record of one, and the table of all."""
