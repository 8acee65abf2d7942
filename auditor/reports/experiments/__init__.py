"""What experiments found: judges held against people and time, and each experiment as a page of its own."""
