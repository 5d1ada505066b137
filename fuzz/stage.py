"""What the tests have already and is used here, too: attacks on conditions, and a site to ask.

The folders of the tests are no packages: their modules are found by name.
"""

import sys

from fuzz.target import ROOT

for _folder in ("tests", "tests/engine", "tests/web"):
    if (_place := str(ROOT / _folder)) not in sys.path:
        sys.path.append(_place)
