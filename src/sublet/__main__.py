"""`python -m sublet` is the `sublet` command."""

from sublet.cli.app import main

main()
