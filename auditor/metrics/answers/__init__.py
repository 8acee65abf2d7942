"""Several answers of a model to one question: how consistent and how diverse they are."""
