"""The GCS emulator as tests start it, on a free loopback port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.service import GcsService, GcsSettings
from lockgate_lab.lab import Lab
from lockgate_lab.server import LabServer


def gcs_server(settings: GcsSettings | None = None, port: int = 0) -> LabServer[GcsCall]:
    """Return the emulator, not yet started, for the caller's own event loop."""
    service = GcsService(settings)
    server = LabServer(service, port=port)
    service.faults = server.faults
    return server


def announcement(url: str) -> Mapping[str, Any]:
    """Return what the emulator says of itself when it runs as a process of its own."""
    return {"url": url, "lab": f"{url}/_lab"}


class GcsLab(Lab[LabServer[GcsCall]]):
    """The GCS emulator in a thread; clients take its `url` as endpoint, or from STORAGE_EMULATOR_HOST."""

    def __init__(self, settings: GcsSettings | None = None, port: int = 0) -> None:
        super().__init__(gcs_server(settings, port))
        service = self.server.store
        assert isinstance(service, GcsService)
        self.service: GcsService = service
