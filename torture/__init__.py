"""What is promised, under kill -9: `make torture`, or `python -m torture --help`."""
