"""The client of a membership at a parameter server's port."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from relaax.errors import BridgeError, NoSuchVersion, ParameterServerAway, TokenRefused
from relaax.net.channels import methods_of, open_channel
from relaax.populations import members_pb2
from relaax.populations.membership import Done, EvaluatedEpisode, Order, WrongNumber
from relaax.populations.service import SERVICE, done_message, done_of, order_message, order_of

#: A parameter server that does not answer for so long is away.
CALL_TIMEOUT_S = 5.0

#: Managers set numbers anew after so many seconds: metadata expire days after their last update.
REFRESH_S = 3600.0

_KINDS = {
    grpc.StatusCode.UNAVAILABLE: ParameterServerAway,
    grpc.StatusCode.DEADLINE_EXCEEDED: ParameterServerAway,
    grpc.StatusCode.CANCELLED: ParameterServerAway,
    grpc.StatusCode.UNAUTHENTICATED: TokenRefused,
    grpc.StatusCode.FAILED_PRECONDITION: WrongNumber,
    grpc.StatusCode.NOT_FOUND: NoSuchVersion,
}


@dataclass(frozen=True)
class Episodes:
    """Evaluated episodes of a stream."""

    #: How many there have been since the start of the parameter server, of this incarnation.
    count: int
    incarnation: int
    #: The latest of them.
    latest: list[EvaluatedEpisode]


@dataclass(frozen=True)
class Versions:
    """The versions of a policy that its parameter database has."""

    numbers: list[int]
    #: The version of each tag; ``latest`` is among them.
    tags: dict[str, int]


class MemberStub:
    """Calls the parameter server of a member at ``url``, ``HOST:PORT``. For several threads.

    Each method raises ParameterServerAway where that does not answer, BridgeError for a refusal.
    """

    def __init__(self, url: str, call_timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = call_timeout_s
        self._channel = open_channel(url)
        self._methods = methods_of(SERVICE, self._channel)
        #: Whether the last call was not answered; any thread may look.
        self.is_away = False

    def episodes(self, stream: str, after: int = 0) -> Episodes:
        """Return the episodes of a stream behind the first ``after``."""
        found = self._call("GetEpisodes", members_pb2.EpisodesQuery(stream=stream, after=after))
        pairs = zip(found.versions, found.returns, strict=True)
        return Episodes(found.count, found.incarnation, [EvaluatedEpisode(*each) for each in pairs])

    def membership(self) -> tuple[Order, Done]:
        """Return the last order, and what the learner has done of it."""
        found = self._call("GetMembership", members_pb2.Nothing())
        return order_of(found.order), done_of(found.done)

    def give(self, order: Order) -> None:
        """Give an order; WrongNumber if its number does not follow the last one's."""
        self._call("SetOrder", order_message(order))

    def note_done(self, done: Done) -> None:
        """Say what the learner goes on with; WrongNumber if there is a newer order."""
        self._call("SetDone", done_message(done))

    def versions(self) -> Versions:
        """Return the versions and tags of the policy's parameter database."""
        found = self._call("GetVersions", members_pb2.Nothing())
        return Versions(list(found.versions), dict(found.tags))

    def tag(self, identifier: int | str, tag: str) -> int:
        """Set a tag, or move it to another version; return this version.

        NoSuchVersion if there is none with this number or tag.
        """
        request = members_pb2.Tag(identifier=str(identifier), tag=tag)
        return int(self._call("SetTag", request).version)

    def set_numbers(self, numbers: Mapping[int, Mapping[str, float]]) -> None:
        """Set numbers in the metadata of versions, by their names; NoSuchVersion as before."""
        of = [members_pb2.VersionNumbers(version=v, numbers=n) for v, n in numbers.items()]
        self._call("SetNumbers", members_pb2.Numbers(of=of))

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _call(self, method: str, request: Any) -> Any:
        try:
            found = self._methods[method](request, timeout=self._timeout_s, wait_for_ready=True)
            self.is_away = False
            return found
        except grpc.RpcError as error:
            kind = _KINDS.get(error.code(), BridgeError)
            self.is_away = kind is ParameterServerAway
            raise kind(f"parameter server {self._url}: {error.details()}") from error
