"""The protocol emrfs where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate import Job
from lockgate.errors import CapabilityMissing


def test_emrfs_is_refused_by_name_on_a_store_without_deferred_uploads(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="deferred-upload"):
        Job(tmp_path, protocol="emrfs", accept_unsafe=True)
