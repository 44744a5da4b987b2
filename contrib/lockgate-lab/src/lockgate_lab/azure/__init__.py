"""An in-memory Azure Data Lake Storage Gen2: one hierarchical namespace behind Blob and Data Lake calls on one port."""

from lockgate_lab.azure.account import ACCOUNT_KEY, ACCOUNT_NAME, AzureSettings
from lockgate_lab.azure.emulator import AzureLab, announcement, azure_server, connection_string, hadoop_configuration
from lockgate_lab.azure.service import AzureService

__all__ = [
    "ACCOUNT_KEY",
    "ACCOUNT_NAME",
    "AzureLab",
    "AzureService",
    "AzureSettings",
    "announcement",
    "azure_server",
    "connection_string",
    "hadoop_configuration",
]
