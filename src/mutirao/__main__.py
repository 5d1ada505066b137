"""`python -m mutirao` is the command."""

from mutirao.cli.main import main

main()
