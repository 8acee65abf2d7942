"""The panel of judges: agreement, biases, voting rules and tests of the judges."""
