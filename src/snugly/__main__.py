"""`python -m snugly`: the same as the `snugly` command."""

import sys

from snugly.cli import main

sys.exit(main())
