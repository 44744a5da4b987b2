"""`python -m lockgate_lab azure`: a server of the lab as a process of its own.

It prints one JSON line with its URL and what a client needs, and ends on SIGTERM, SIGINT, or when a piped standard
input closes. Faults, latency and limits are set over its control routes while it runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lockgate_lab import azure, gcs
from lockgate_lab.announced_server import run_until_told
from lockgate_lab.dialects import DIALECTS
from lockgate_lab.fault_kinds import KINDS, FaultRates
from lockgate_lab.fault_proxy import FaultProxy
from lockgate_lab.fault_schedule import FaultSchedule, NoFaults, ReplayedFaults, SeededFaults


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lockgate_lab", description=__doc__)
    servers = parser.add_subparsers(dest="server", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--port", type=int, default=0, help="0 takes a free one")
    azure_parser = servers.add_parser("azure", parents=[common], help="Azure Data Lake Storage Gen2, Blob and DFS")
    azure_parser.add_argument("--anonymous", action="store_true", help="serve requests without credentials")
    azure_parser.add_argument("--check-signatures", action="store_true", help="refuse wrong Shared Key signatures")
    servers.add_parser("gcs", parents=[common], help="Google Cloud Storage, JSON API")
    proxy_parser = servers.add_parser("proxy", parents=[common], help="a fault proxy in front of an HTTP server")
    proxy_parser.add_argument("--upstream", required=True, help="URL of the server, without a path")
    proxy_parser.add_argument("--dialect", choices=sorted(DIALECTS), default="plain")
    proxy_parser.add_argument("--seed", type=int, default=0)
    proxy_parser.add_argument("--rate", type=float, default=0.0, help="share of requests for each kind of fault")
    proxy_parser.add_argument("--kinds", default=",".join(KINDS), help="the kinds, comma-separated")
    proxy_parser.add_argument("--log", type=Path, help="write decisions to this file, as JSON lines")
    proxy_parser.add_argument("--replay", type=Path, help="repeat the decisions of this file instead")
    return parser.parse_args()


def _schedule(arguments: argparse.Namespace) -> FaultSchedule:
    if arguments.replay is not None:
        return ReplayedFaults(arguments.replay)
    if not arguments.rate:
        return NoFaults()
    kinds = [kind.strip().replace("-", "_") for kind in arguments.kinds.split(",")]
    return SeededFaults(arguments.seed, FaultRates(**dict.fromkeys(kinds, arguments.rate)))


def main() -> None:
    """Run the server the command line names."""
    arguments = _arguments()
    if arguments.server == "azure":
        settings = azure.AzureSettings(anonymous=arguments.anonymous, check_signatures=arguments.check_signatures)
        azure_server = azure.azure_server(settings, arguments.port)
        run_until_told(azure_server, lambda: azure.announcement(azure_server.url()))
    elif arguments.server == "gcs":
        gcs_server = gcs.gcs_server(port=arguments.port)
        run_until_told(gcs_server, lambda: gcs.announcement(gcs_server.url()))
    else:
        proxy = FaultProxy(
            arguments.upstream,
            _schedule(arguments),
            dialect=DIALECTS[arguments.dialect],
            port=arguments.port,
            decisions=arguments.log,
        )
        run_until_told(proxy, lambda: {"url": proxy.url(), "lab": f"{proxy.url()}/_lab"})


if __name__ == "__main__":
    main()
