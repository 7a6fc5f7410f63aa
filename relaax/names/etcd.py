"""Names in an etcd, by the JSON of its gateway: versions 3.4 and later."""

import base64
import json
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from relaax.errors import BridgeError
from relaax.names.paths import checked_name, checked_ttl, checked_value
from relaax.names.registry import NameTaken, RegistryAway

#: An etcd that does not answer for so long is away.
CALL_TIMEOUT_S = 5.0

#: Before all names, apart from other users of this etcd.
_BEFORE = "relaax/"

#: The byte after the one that ends a segment: ends a range of names.
_AFTER_SLASH = chr(ord("/") + 1)

#: Statuses worth a retry: there is no leader, or too much to do.
_AWAY = (429, 500, 502, 503, 504)

#: Status for a lease that has ended.
_NOT_FOUND = 404


class _NotFound(BridgeError):
    """There is no such lease."""


class EtcdNames:
    """A registry in the etcd at ``address``, ``HOST:PORT``. For several threads.

    Leases of etcd have 2 seconds at least.
    """

    def __init__(self, address: str, call_timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._url = f"http://{address}/v3"
        self._timeout_s = call_timeout_s
        # A proxy of the environment's variables is for other addresses.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def register(self, name: str, value: str, ttl_s: int) -> int:
        """See Registry."""
        key, text = _coded(_BEFORE + checked_name(name)), _coded(checked_value(value))
        lease = int(self._call("lease/grant", {"TTL": checked_ttl(ttl_s)})["ID"])
        is_new = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": 0}
        put = {"request_put": {"key": key, "value": text, "lease": lease}}
        if self._call("kv/txn", {"compare": [is_new], "success": [put]}).get("succeeded"):
            return lease
        self.withdraw(lease)
        raise NameTaken(f"the name {name} is taken")

    def keep_alive(self, lease: int) -> bool:
        """See Registry."""
        answer = self._call("lease/keepalive", {"ID": lease})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    def withdraw(self, lease: int) -> None:
        """See Registry."""
        with suppress(_NotFound):
            self._call("lease/revoke", {"ID": lease})

    def resolve(self, name: str) -> str | None:
        """See Registry."""
        return self._range({"key": _coded(_BEFORE + name)}).get(name)

    def below(self, folder: str) -> dict[str, str]:
        """See Registry."""
        path = _BEFORE + checked_name(folder)
        return self._range({"key": _coded(f"{path}/"), "range_end": _coded(path + _AFTER_SLASH)})

    def close(self) -> None:
        """See Registry; each call has a connection of its own."""

    def _range(self, request: dict[str, str]) -> dict[str, str]:
        found = self._call("kv/range", request).get("kvs", [])
        return {
            _decoded(each["key"]).removeprefix(_BEFORE): _decoded(each.get("value", ""))
            for each in found
        }

    def _call(self, method: str, content: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  # http, see above
            f"{self._url}/{method}", json.dumps(content).encode(), method="POST"
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except HTTPError as error:
            raise _kind_of(error.code)(f"etcd at {self._url}: {method}: {error}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise RegistryAway(f"etcd at {self._url}: {error}") from error


def _kind_of(status: int) -> type[BridgeError]:
    if status in _AWAY:
        return RegistryAway
    return _NotFound if status == _NOT_FOUND else BridgeError


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
