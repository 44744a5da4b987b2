"""What stands beside the tests is imported by its own name: `simworld`, `mutants`, `explore`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
