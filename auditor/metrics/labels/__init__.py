"""People's labels on random samples: whom to ask what, and what labels say of judges and scores."""
