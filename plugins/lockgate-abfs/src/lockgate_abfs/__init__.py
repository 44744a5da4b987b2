"""Lockgate's store for Azure Data Lake Storage Gen2, at `abfs://` and `abfss://` URLs."""

__version__ = "0.1.0"
