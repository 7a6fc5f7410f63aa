"""A membership behind gRPC, beside other services at a parameter server's port."""

import json
import logging
from collections.abc import Callable

import grpc

from relaax.errors import CheckpointError
from relaax.net.refusals import handlers_of, refuse
from relaax.populations import members_pb2
from relaax.populations.membership import Done, Membership, Order, WrongNumber

_log = logging.getLogger(__name__)

SERVICE = members_pb2.DESCRIPTOR.services_by_name["Members"]


class MembersServicer:
    """Turns gRPC messages into calls of ``membership``, and back."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

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
        """Return the last order, and what was done of it."""
        order, done = self._membership.order, self._membership.done
        return members_pb2.Membership(
            order=order_message(order),
            done=members_pb2.Done(number=done.number, version=done.version),
        )

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
        """Keep what a learner goes on with."""
        done = Done(request.number, request.version)
        return self._kept(lambda: self._membership.note_done(done), context)

    def _kept(self, keep: Callable[[], None], context: grpc.ServicerContext) -> members_pb2.Nothing:
        try:
            keep()
        except WrongNumber as error:
            refuse(_log, context, error, grpc.StatusCode.FAILED_PRECONDITION)
        except CheckpointError as error:  # the disk may have room again later
            refuse(_log, context, error, grpc.StatusCode.UNAVAILABLE)
        return members_pb2.Nothing()


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


def method_handlers(membership: Membership) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server."""
    return handlers_of(SERVICE, MembersServicer(membership))
