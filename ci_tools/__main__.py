"""Entry point of `python -m ci_tools`."""

import sys

from ci_tools.cli import main

sys.exit(main())
