"""What the option `--directory` of the benchmarks takes."""

from __future__ import annotations

import argparse
from pathlib import Path


def given_directory(text: str) -> Path:
    """One that is there. Raises what argparse tells as an error otherwise."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {text}")
    return Path(text)
