"""The command line: commands parse arguments, call the core, and print data to stdout and messages to stderr."""
