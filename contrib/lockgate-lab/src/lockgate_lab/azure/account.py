"""One storage account: its containers, its settings, and who may call it."""

from __future__ import annotations

from dataclasses import dataclass

from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.namespace import Namespace, Node, Parts
from lockgate_lab.azure.shared_key import require_shared_key
from lockgate_lab.azure.storage_errors import StorageError

ACCOUNT_NAME = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and key that Microsoft publishes for storage emulators; no secret."""


@dataclass(slots=True)
class AzureSettings:
    """What a test may change about the service while it runs."""

    anonymous: bool = False
    """Let requests pass that carry no credentials at all."""

    check_signatures: bool = False
    """Refuse a Shared Key signature that is not the one the account key makes of the request."""

    transaction_ids: bool = True
    """Keep `x-ms-client-transaction-id`, and answer it on HEAD; off: the service of before 2024-11-04."""

    legacy_moves_inside: bool = False
    """Move the source of a rename into a directory at its target also under `mode=legacy`: that the service refuses it
    there is documented for directories only, so a client must not rely on it."""

    list_page_max: int = 5000
    """Entries on one page of a listing, at most, whatever the client allows."""

    delete_page_max: int = 1000
    """Entries whose access one call of a paginated recursive delete checks, at most."""


class AzureAccount:
    """The containers of one account, and the settings every operation reads."""

    def __init__(self, settings: AzureSettings | None = None) -> None:
        self.name = ACCOUNT_NAME
        self.key = ACCOUNT_KEY
        self.settings = settings or AzureSettings()
        self.containers: dict[str, Namespace] = {}

    def create(self, name: str) -> Namespace:
        """Add a container, in place of one of that name."""
        self.containers[name] = Namespace(name)
        return self.containers[name]

    def container(self, call: AzureCall) -> Namespace:
        """Return the container a call names; raises the not-found code of the service that was called."""
        found = self.containers.get(call.container)
        if found is None:
            raise StorageError("FilesystemNotFound" if call.dfs else "ContainerNotFound")
        return found

    def find(self, container: str, parts: Parts) -> Node | None:
        """Return what is at a path, or None, where the container is missing too."""
        namespace = self.containers.get(container)
        return namespace.find(parts) if namespace is not None else None

    def path(self, call: AzureCall) -> Node:
        """Return what a call names; raises the not-found code of the service that was called."""
        found = self.container(call).find(call.parts)
        if found is None:
            raise StorageError("PathNotFound" if call.dfs else "BlobNotFound")
        return found

    def require_credentials(self, call: AzureCall) -> None:
        """Raise NoAuthenticationInformation when a call has no credentials, AuthenticationFailed for a bad signature.

        A SAS is taken as given: neither its signature nor its permissions and times are looked at.
        """
        authorization = call.headers.get("Authorization", "")
        if not authorization:
            if not self.settings.anonymous and not call.query.get("sig"):
                raise StorageError("NoAuthenticationInformation", headers={"WWW-Authenticate": "Bearer"})
            return
        if self.settings.check_signatures and authorization.startswith("SharedKey "):
            require_shared_key(call, self.name, self.key)
