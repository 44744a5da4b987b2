"""Lockgate's store for Google Cloud Storage, at `gs://` URLs."""

__version__ = "0.1.0"
