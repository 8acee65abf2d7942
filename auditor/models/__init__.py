"""The gateway to language models and sentence encoders: the only place where providers are known."""
