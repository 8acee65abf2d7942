"""Read an audit's answers cell by cell, and write them as pages."""
