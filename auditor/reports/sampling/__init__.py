"""What more samples buy."""
