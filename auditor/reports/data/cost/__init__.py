"""Cost of an audit: forecast, recorded cost, and savings from smaller designs."""
