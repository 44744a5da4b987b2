"""An in-memory Azure Data Lake Storage Gen2: one hierarchical namespace behind Blob and DFS calls."""
