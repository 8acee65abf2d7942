"""Gates: thresholds for the figures of an audit, and whether it meets them."""
