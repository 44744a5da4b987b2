"""`python -m lockgate_lab azure`: a server of the lab as a process of its own.

It prints one JSON line with its URL and what a client needs, and ends on SIGTERM, SIGINT, or when a piped standard
input closes.
"""

from __future__ import annotations

import argparse
import asyncio

from lockgate_lab import azure
from lockgate_lab.announced_server import serve_until_told


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lockgate_lab", description=__doc__)
    servers = parser.add_subparsers(dest="server", required=True)
    azure_parser = servers.add_parser("azure", help="Azure Data Lake Storage Gen2, Blob and DFS on one port")
    azure_parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    azure_parser.add_argument("--anonymous", action="store_true", help="serve requests without credentials")
    azure_parser.add_argument("--check-signatures", action="store_true", help="refuse wrong Shared Key signatures")
    return parser.parse_args()


def main() -> None:
    """Run the server the command line names."""
    arguments = _arguments()
    settings = azure.AzureSettings(anonymous=arguments.anonymous, check_signatures=arguments.check_signatures)
    server = azure.azure_server(settings, arguments.port)
    asyncio.run(serve_until_told(server, lambda: azure.announcement(server.url())))


if __name__ == "__main__":
    main()
