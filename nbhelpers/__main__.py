"""`python -m nbhelpers` is the command `noisebook`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
