"""Documents of the experiments."""
