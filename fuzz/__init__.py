"""Input that nobody thought of: `make fuzz`, or `python -m fuzz --help`."""
