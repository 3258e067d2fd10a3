"""`python -m specdec_lib`, which is the `specdec` command."""

from specdec_lib.suite.command import main

if __name__ == "__main__":
    main()
