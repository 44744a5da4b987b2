"""Lockgate's store for Amazon S3 and services of its kind, at `s3://` and `s3a://` URLs."""

__version__ = "0.1.0"
