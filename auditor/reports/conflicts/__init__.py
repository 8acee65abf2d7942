"""Where models contradict each other, and what became of it."""
