"""What stands beside the tests is imported by its own name: `experiments`, `places`, `paper`, `attributes_table`; and
what the simulation is made of, from beside that."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "simulation")]
