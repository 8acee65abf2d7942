"""Export an audit to other programs: Inspect AI, MLflow, Weights & Biases, and files of tables."""
