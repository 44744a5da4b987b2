"""What is started and stopped, as a context manager: written once for every server of the lab."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Startable(ABC):
    """Started and stopped from plain code."""

    @abstractmethod
    def start(self) -> None:
        """Start it; what it needs is there when this returns."""

    @abstractmethod
    def stop(self) -> None:
        """End it. Does nothing when it is not running."""

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.stop()


class LoopServer(ABC):
    """Started and stopped on one event loop, known by a URL in between."""

    @abstractmethod
    async def start(self) -> None:
        """Begin to listen, on loopback."""

    @abstractmethod
    async def stop(self) -> None:
        """End, with every connection."""

    @abstractmethod
    def url(self) -> str:
        """Return the URL, without a slash at its end."""

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        await self.stop()
