"""Would another choice give another result? Experiments on an audit that was run."""
