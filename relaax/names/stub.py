"""The client of the names at a parameter server's port."""

from typing import Any

import grpc

from relaax.errors import BridgeError, ConfigurationError, TokenRefused
from relaax.names import names_pb2
from relaax.names.paths import checked_name
from relaax.names.registry import NameTaken, RegistryAway
from relaax.names.service import SERVICE
from relaax.net.channels import methods_of, open_channel

#: A server that does not answer for so long is away.
CALL_TIMEOUT_S = 5.0

_AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)


class NamesStub:
    """A registry at ``url``, ``HOST:PORT`` of a parameter server. For several threads."""

    def __init__(self, url: str, call_timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = call_timeout_s
        self._channel = open_channel(url)
        self._methods = methods_of(SERVICE, self._channel)

    def register(self, name: str, value: str, ttl_s: int) -> int:
        """See Registry."""
        entry = names_pb2.Entry(name=name, value=value, ttl_s=ttl_s)
        return int(self._call("Register", entry).id)

    def keep_alive(self, lease: int) -> bool:
        """See Registry."""
        return self._call("KeepAlive", names_pb2.Lease(id=lease)) is not None

    def withdraw(self, lease: int) -> None:
        """See Registry."""
        self._call("Withdraw", names_pb2.Lease(id=lease))

    def resolve(self, name: str) -> str | None:
        """See Registry."""
        found = self._call("Resolve", names_pb2.Name(name=name)).entries
        return found[0].value if found else None

    def below(self, folder: str) -> dict[str, str]:
        """See Registry."""
        found = self._call("Below", names_pb2.Name(name=checked_name(folder))).entries
        return {entry.name: entry.value for entry in found}

    def close(self) -> None:
        """See Registry."""
        self._channel.close()

    def _call(self, method: str, request: Any) -> Any:
        """Return the answer; None where a lease has ended."""
        try:
            return self._methods[method](request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            code = error.code()
            if code is grpc.StatusCode.NOT_FOUND:
                return None
            raise self._explained(code, f"names at {self._url}: {error.details()}") from error

    def _explained(self, code: grpc.StatusCode, why: str) -> Exception:
        if code in _AWAY:
            return RegistryAway(why)
        if code is grpc.StatusCode.ALREADY_EXISTS:
            return NameTaken(why)
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            return ValueError(why)
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return TokenRefused(why)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return ConfigurationError(
                f"{why}: no parameter server of this version with the ordinary bridge listens there"
            )
        return BridgeError(why)
