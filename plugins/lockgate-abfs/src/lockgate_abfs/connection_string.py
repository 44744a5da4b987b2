"""Azure's connection strings: `Name=value;…`, names in any case.

Source: learn.microsoft.com/azure/storage/common/storage-configure-connection-string.
"""

from __future__ import annotations

from lockgate.model.errors import OptionError

_EMULATOR = {
    "accountname": "devstoreaccount1",
    # Published by Microsoft for every emulator; no secret.
    "accountkey": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "blobendpoint": "http://127.0.0.1:10000/devstoreaccount1",
}


def parse_connection_string(text: str) -> dict[str, str]:
    """The values by their names in lower case.

    Raises:
        OptionError: it is not of that form. The text is not shown.
    """
    if not text:
        return {}
    found = {}
    for setting in text.split(";"):
        name, separator, value = setting.strip().partition("=")
        if separator:
            found[name.strip().lower()] = value.strip()
        elif name:
            raise OptionError(
                "store.connection_string has a part that is not Name=value",
                next_step="copy it from the account's page of access keys",
            )
    if found.get("usedevelopmentstorage", "").lower() == "true":
        return _EMULATOR | found
    return found
