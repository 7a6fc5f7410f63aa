"""HOST:PORT."""

from dataclasses import dataclass

from relaax.common.errors import ConfigurationError

MAX_PORT = 65535


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address written as ``HOST:PORT`` or ``[IPv6]:PORT``; else ConfigurationError."""
        host, separator, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
        is_number = port.isascii() and port.isdigit()
        if not (separator and host and is_number and int(port) <= MAX_PORT):
            raise ConfigurationError(
                f"an address is HOST:PORT with a port up to {MAX_PORT}, such as localhost:7001; "
                f"this is {text!r}"
            )
        if ":" in host and not text.startswith("["):
            raise ConfigurationError(f"an IPv6 address stands in brackets: [{host}]:{port}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
