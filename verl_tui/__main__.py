"""`python -m verl_tui` is the command `verl-tui`."""

import sys

from verl_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
