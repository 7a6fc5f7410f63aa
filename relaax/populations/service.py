"""A membership behind gRPC, beside other services at a parameter server's port."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Protocol

import grpc

from relaax.errors import CheckpointError, ConfigurationError, NoSuchVersion
from relaax.net.refusals import handlers_of, refuse
from relaax.populations import members_pb2
from relaax.populations.membership import Done, Membership, Order, WrongNumber
from relaax.processes.identifiers import Identifier, identifier_of

_log = logging.getLogger(__name__)

SERVICE = members_pb2.DESCRIPTOR.services_by_name["Members"]


class VersionDatabase(Protocol):
    """The versions of a policy: relaax.parameters.database.DatabaseWriter."""

    def list_versions(self) -> list[int]:
        """Return the numbers of all versions, the oldest first."""

    def list_tags(self) -> dict[str, int]:
        """Return the version of each tag."""

    def tag(self, identifier: Identifier, new_tag: str) -> int:
        """Set a tag, or move it to another version; return the version."""

    def set_numbers(self, numbers: Mapping[int, Mapping[str, float]]) -> None:
        """Set numbers in the metadata of versions."""


class MembersServicer:
    """Turns gRPC messages into calls of ``membership`` and ``database``, and back."""

    def __init__(self, membership: Membership, database: VersionDatabase | None = None) -> None:
        self._membership = membership
        self._database = database

    def get_episodes(
        self, request: members_pb2.EpisodesQuery, context: grpc.ServicerContext
    ) -> members_pb2.Episodes:
        """Return the latest evaluated episodes of a stream."""
        count, episodes = self._membership.episodes(request.stream, request.after)
        return members_pb2.Episodes(
            count=count,
            versions=[each.version for each in episodes],
            returns=[each.episode_return for each in episodes],
            incarnation=self._membership.incarnation,
        )

    def get_membership(
        self, request: members_pb2.Nothing, context: grpc.ServicerContext
    ) -> members_pb2.Membership:
        """Return the last order, and how it has ended."""
        order, done = self._membership.order, self._membership.done
        return members_pb2.Membership(order=order_message(order), done=done_message(done))

    def set_order(
        self, request: members_pb2.Order, context: grpc.ServicerContext
    ) -> members_pb2.Nothing:
        """Keep an order."""
        try:
            order = order_of(request)
        except ValueError as error:
            refuse(_log, context, error)
        return self._kept(lambda: self._membership.give(order), context)

    def set_done(
        self, request: members_pb2.Done, context: grpc.ServicerContext
    ) -> members_pb2.Nothing:
        """Keep how an order has ended."""
        return self._kept(lambda: self._membership.note_done(done_of(request)), context)

    def get_versions(
        self, request: members_pb2.Nothing, context: grpc.ServicerContext
    ) -> members_pb2.Versions:
        """Return the versions and tags of the database."""
        with self._opened(context) as database:
            return members_pb2.Versions(
                versions=database.list_versions(), tags=database.list_tags()
            )

    def set_tag(
        self, request: members_pb2.Tag, context: grpc.ServicerContext
    ) -> members_pb2.Version:
        """Set a tag, or move it."""
        with self._opened(context) as database:
            identifier = identifier_of(request.identifier)
            return members_pb2.Version(version=database.tag(identifier, request.tag))

    def set_numbers(
        self, request: members_pb2.Numbers, context: grpc.ServicerContext
    ) -> members_pb2.Nothing:
        """Set numbers in the metadata of versions."""
        with self._opened(context) as database:
            database.set_numbers({each.version: dict(each.numbers) for each in request.of})
            return members_pb2.Nothing()

    @contextmanager
    def _opened(self, context: grpc.ServicerContext) -> Iterator[VersionDatabase]:
        """Yield the database; what it raises within the block is the answer."""
        if self._database is None:
            error = ConfigurationError("this parameter server has no parameter database")
            refuse(_log, context, error, grpc.StatusCode.UNIMPLEMENTED)
        try:
            yield self._database
        except NoSuchVersion as error:
            refuse(_log, context, error, grpc.StatusCode.NOT_FOUND)
        except ConfigurationError as error:
            refuse(_log, context, error)
        except CheckpointError as error:
            refuse(_log, context, error, grpc.StatusCode.UNAVAILABLE)

    def _kept(self, keep: Callable[[], None], context: grpc.ServicerContext) -> members_pb2.Nothing:
        try:
            keep()
        except WrongNumber as error:
            refuse(_log, context, error, grpc.StatusCode.FAILED_PRECONDITION)
        except CheckpointError as error:  # the disk may have room again later
            refuse(_log, context, error, grpc.StatusCode.UNAVAILABLE)
        return members_pb2.Nothing()


def done_message(done: Done) -> members_pb2.Done:
    """Return the message of an order that was carried out or refused."""
    return members_pb2.Done(**asdict(done))


def done_of(message: members_pb2.Done) -> Done:
    """Return the order of a message that was carried out or refused."""
    return Done(message.number, message.version, message.source_version, message.refused)


def order_message(order: Order) -> members_pb2.Order:
    """Return the message of an order."""
    return members_pb2.Order(
        number=order.number,
        hyperparameters=json.dumps(order.hyperparameters),
        source=order.source,
        checkpoints=order.checkpoints,
    )


def order_of(message: members_pb2.Order) -> Order:
    """Return the order of a message; ValueError where its hyperparameters are no JSON object."""
    hyperparameters = json.loads(message.hyperparameters or "{}")
    if not isinstance(hyperparameters, dict):
        raise ValueError(f"hyperparameters must be an object, is {message.hyperparameters}")
    return Order(message.number, hyperparameters, message.source, message.checkpoints)


def method_handlers(
    membership: Membership, database: VersionDatabase | None = None
) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server; ``database``: of the policy, where it has one."""
    return handlers_of(SERVICE, MembersServicer(membership, database))
