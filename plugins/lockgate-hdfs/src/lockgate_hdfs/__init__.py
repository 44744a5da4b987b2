"""Lockgate's store for HDFS: `hdfs` by the native protocol, `webhdfs` by REST. The plugin is `lockgate_hdfs.plugin`."""
