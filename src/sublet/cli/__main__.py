"""`python -m sublet.cli` is `sublet`."""

from sublet.cli import main

if __name__ == "__main__":
    main()
