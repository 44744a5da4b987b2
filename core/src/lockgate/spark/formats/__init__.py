"""File formats: record batches in, bytes out. One module a format; `registry.py` names them all."""
