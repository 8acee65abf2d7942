"""Send calls through providers' batch APIs: half the price, answers within a day, collected by any later run."""
