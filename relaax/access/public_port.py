"""Refuses ports that anyone on a network could use."""

import logging

from relaax.access.process_access import Access
from relaax.address import Address, is_loopback
from relaax.errors import ConfigurationError

_log = logging.getLogger(__name__)


def refuse_unguarded(address: Address, access: Access) -> None:
    """Raise ConfigurationError for an address that others reach, unless TLS and tokens guard it.

    Not where the user allows it.
    """
    what = "" if access.is_insecure else _missing(address, access)
    if what:
        raise ConfigurationError(
            f"cannot listen at {address}: other machines reach this address, and there is no "
            f"{what}. 'relaax-certificates FOLDER HOST ...' makes the files for both; or listen at "
            "localhost; or give --insecure, or set RELAAX_INSECURE=1, on a network where everybody "
            "may use this port"
        )


def require_guarded(address: Address, access: Access) -> None:
    """Do as ``refuse_unguarded``, before a port is opened; warn of what the user allows."""
    refuse_unguarded(address, access)
    if what := _missing(address, access):
        _log.warning(
            "--insecure: everybody who reaches %s may use it: there is no %s", address, what
        )


def _missing(address: Address, access: Access) -> str:
    """Return in words what guards should be there and are not; nothing if all is well."""
    missing = []
    if access.tls is None:
        missing.append("TLS (--tls-cert, --tls-key)")
    if access.tokens is None:
        missing.append("token (--auth-token-file)")
    return "" if not missing or is_loopback(address.host) else " and ".join(missing)
