"""`python -m specdec_lib.reproduce`."""

import sys

from specdec_lib.reproduce.command import main

if __name__ == "__main__":
    sys.exit(main())
