"""`python -m testbed` is `testbed/site`."""

import sys

from testbed.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
