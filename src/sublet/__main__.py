"""`python -m sublet` is the `sublet` command."""

from sublet.cli import main

main()
