"""What stores that speak HTTP have in common: one bounded connection pool, pacing, retries, uploads from plain code.

Needs the extra `http`. A plugin's store makes a `StoreClient` and asks it; what is safe to repeat is said at each
call. Nothing below repeats a request by itself.
"""
