"""A parameter server in several shards, each behind a gRPC port of its own, in one process."""

import contextlib
import threading

import numpy as np
from processes import free_port, wait_for

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.checkpoints.checkpoint_sets import FirstSaver, PartSaver
from relaax.errors import CheckpointError
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.process.shards import (
    FirstServicer,
    FirstShard,
    OtherServicer,
    OtherShards,
    begin,
)
from relaax.parameters.sharded import ShardedBridge
from relaax.parameters.training_watch import first_answer
from relaax.processes.shard import Shard


def annealed(global_t):
    """A learning rate that another global step would change."""
    return 0.1 / (1 + global_t / 100)


def whole(
    initial, optimizer, saver=None, max_global_step=float("inf"), filters=None, combiner=None
):
    """A parameter server before it is divided, and its store."""
    store = ParameterStore(initial, optimizer, annealed, filters, combiner)
    service = ParameterService(store, NullMetrics())
    saver = saver or NullSaver()
    return ParameterServer(store, service, saver, {"size": initial.size}, max_global_step)


class Shards:
    """The shards, each of which may be stopped and started again; parts are in ``place``."""

    def __init__(
        self,
        count,
        initial,
        make_optimizer,
        place=None,
        max_global_step=float("inf"),
        filters=None,
        make_combiner=lambda: None,
    ):
        self.count, self.place = count, place
        self._initial = initial
        self._make = lambda saver: whole(
            initial, make_optimizer(initial.size), saver, max_global_step, filters, make_combiner()
        )
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        self.others = {}
        self.start_first()
        try:
            for index in range(2, count + 1):
                self.start_other(index)
        except BaseException:
            self.close()
            raise

    def start_first(self):
        self.known = OtherShards(self.addresses)
        saver = NullSaver()
        if self.place is not None:
            saver = CheckpointSaver(DirectoryStore(self.place), keep=2)
        self.saver = FirstSaver(saver, self.known.save_parts)
        self.first = self._make(self.saver)
        part = self.first.divide(Shard(1, self.count))
        self.first.restore_latest_checkpoint()
        servicer = FirstServicer(self.count, self._initial, self.saver, self.first.save_checkpoint)
        self._port = GrpcParameterServer(
            self.addresses[0],
            self.first.bridge(),
            [servicer.handlers()],
            missing=lambda: self.known.missing() or "",
            part=part,
        )

    def start_other(self, index):
        self.others[index] = Other(self, index, self._make)

    def kill_other(self, index):
        self.others.pop(index).close()

    def stop_first(self):
        """End the first shard without a checkpoint."""
        self._port.stop(0.5)
        self.known.close()

    def wait_for_all(self):
        wait_for(lambda: not self.known.missing(), "all shards")

    def can_save(self):
        """Save; return whether all have."""
        with contextlib.suppress(CheckpointError):
            self.first.save_checkpoint()
            return True

    def bridge(self, **settings):
        return contextlib.closing(ShardedBridge(self.addresses, **settings))

    def close(self):
        for index in list(self.others):
            self.kill_other(index)
        self.stop_first()


class Other:
    """Another shard than the first."""

    def __init__(self, shards, index, make):
        shard = Shard(index, shards.count)
        store = None
        if shards.place is not None:
            store = DirectoryStore(shards.place / shard.directory_name())
        saver = PartSaver(store, shard)
        self.server = make(saver)
        self.part = part = self.server.divide(shard)
        self._first = FirstShard(shards.addresses[0], shard, part.size)
        try:
            beginning = first_answer(
                self._first.join, "the first shard", threading.Event(), give_up_s=20.0, pause_s=0.05
            )
            begin(self.server, part, saver, beginning)
        except BaseException:
            self._first.close()
            raise
        self.servicer = OtherServicer(self.server, saver)
        self._port = GrpcParameterServer(
            shards.addresses[index - 1], self.server.bridge(), [self.servicer.handlers()], part=part
        )

    def until_over(self, stop):
        """Follow the first shard."""
        return self._first.until_over(self.part, stop)

    def leave(self):
        """Save what is to be saved before it ends."""
        self._port.refuse_calls()
        self.servicer.save_last(self._first)

    def close(self):
        self._first.close()
        self._port.stop(0.5)


def random_vectors(count, size, seed=1):
    """Gradients float32 [count, size]."""
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
