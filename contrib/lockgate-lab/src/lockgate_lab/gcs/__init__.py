"""An in-memory Google Cloud Storage: the JSON API with preconditions, moves, resumable uploads and batches."""

from lockgate_lab.gcs.emulator import GcsLab, announcement, gcs_server
from lockgate_lab.gcs.service import GcsService, GcsSettings

__all__ = ["GcsLab", "GcsService", "GcsSettings", "announcement", "gcs_server"]
