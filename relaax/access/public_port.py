"""Refuses ports that anyone on a network could use."""

import logging

from relaax.access.process_access import Access
from relaax.address import Address, is_loopback
from relaax.errors import ConfigurationError

_log = logging.getLogger(__name__)


def require_guarded(address: Address, access: Access) -> None:
    """Raise ConfigurationError for an address that others reach, unless TLS and tokens guard it.

    The user may allow it; then a warning is logged.
    """
    missing = _missing(access)
    if not missing or is_loopback(address.host):
        return
    what = " and ".join(missing)
    if not access.is_insecure:
        raise ConfigurationError(
            f"cannot listen at {address}: other machines reach this address, and there is no "
            f"{what}. 'relaax-certificates FOLDER HOST ...' makes the files for both; or listen at "
            "localhost; or give --insecure, or set RELAAX_INSECURE=1, on a network where everybody "
            "may use this port"
        )
    _log.warning("--insecure: everybody who reaches %s may use it: there is no %s", address, what)


def _missing(access: Access) -> list[str]:
    missing = []
    if access.tls is None:
        missing.append("TLS (--tls-cert, --tls-key)")
    if access.tokens is None:
        missing.append("token (--auth-token-file)")
    return missing
