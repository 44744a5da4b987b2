"""Makes the broken stores importable, also in the runs that pytester starts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
