"""What an endpoint of a store must look like: looked at before the first request, since one that no request can be sent
to is not a store that is slow, and trying it again for as long as the patience lasts helps nobody."""

from __future__ import annotations

import re

from lockgate.model.errors import OptionError

_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^/?#@\s:\[\]]+)(?::([0-9]{1,5}))?")
_ENDPOINT = re.compile(r"https?://([^/?#@\s]+)(?:/[^?#\s]*)?", re.IGNORECASE)
PORT_MAX = 65535


def is_host_and_port(text: str) -> bool:
    """Whether this is a host, or a host and a port that there is."""
    match = _HOST_AND_PORT.fullmatch(text)
    return match is not None and (match[1] is None or 0 < int(match[1]) <= PORT_MAX)


def check_endpoint(name: str, endpoint: str) -> None:
    """Make sure that requests can be sent to an endpoint; `name` is what it was given by.

    Raises:
        OptionError: none can.
    """
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or not is_host_and_port(match[1]):
        raise OptionError(
            f"{name} cannot be {endpoint!r}",
            next_step=f"{name} takes http://host:port or https://host, with a port from 1 to {PORT_MAX}",
        )
