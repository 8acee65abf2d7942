"""The command line: thin; every command parses, calls the core, and prints. Data to stdout, talk to stderr."""
