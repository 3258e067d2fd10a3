"""`python -m specdec_lib.suite.reproduce`."""

import sys

from specdec_lib.suite.reproduce.command import main

if __name__ == "__main__":
    sys.exit(main())
