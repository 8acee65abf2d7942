"""Why requests of an audit failed, and which models have no usable answer."""
