"""A parameter server in several shards, each behind a gRPC port of its own, in one process."""

import contextlib

import numpy as np
from processes import free_port

from relaax.algorithm_base import NullMetrics, NullSaver, Phase
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.parameter_server import ParameterServer
from relaax.parameters.parameter_service import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.process.shards.follower import Follower
from relaax.parameters.process.shards.following import FirstStub, Following, NoParts, SavedParts
from relaax.parameters.process.shards.leader import Leader
from relaax.parameters.process.shards.members import Members
from relaax.parameters.process.shards.service import ShardServicer, method_handlers
from relaax.parameters.process.shards.serving import FirstShard, OtherService
from relaax.parameters.process.shards.staging import Staging
from relaax.parameters.sharded import ShardedBridge
from relaax.processes.shard import Shard


def annealed(global_t):
    """A learning rate that another order of updates would change."""
    return 0.1 / (1 + global_t / 100)


def whole(initial, optimizer, max_global_step=float("inf")):
    """A parameter server before it is divided, and its store."""
    store = ParameterStore(initial, optimizer, annealed)
    service = ParameterService(store, NullMetrics())
    return ParameterServer(store, service, NullSaver(), {"size": initial.size}, max_global_step)


class Shards:
    """The shards, of which ``others`` may be stopped and started again; parts are in ``place``."""

    def __init__(self, count, initial, make_optimizer, place=None, max_global_step=float("inf")):
        self.count, self.place = count, place
        self._make = lambda: whole(initial, make_optimizer(initial.size), max_global_step)
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        self.others = {}
        self.start_first()
        for index in range(2, count + 1):
            self.start_other(index)

    def start_first(self):
        shard, undivided = Shard(1, self.count), self._make()
        initial = undivided.bridge().get_values().vector
        part = undivided.divide(shard)
        saver = NullSaver()
        if self.place is not None:
            saver = CheckpointSaver(DirectoryStore(self.place), keep=2)
        self.members, self.staging = Members(shard), Staging()
        self.leader = Leader(shard, part, initial, self.staging, self.members)
        self.first = FirstShard(undivided, self.leader, part, shard, saver)
        self.first.restore_latest_checkpoint()
        self._port = self.first.listen(self.addresses[0])

    def start_other(self, index, hears=None):
        """Start another one; of what it is told it gets what ``hears`` makes of that."""
        self.others[index] = Other(self, index, self._make(), hears)

    def stop_other(self, index):
        self.others.pop(index).close()

    def refuse_calls(self):
        """Let the first shard be about to stop."""
        self._port.refuse_calls()

    def stop_first(self):
        self._port.stop(0.5)

    def bridge(self, **settings):
        return contextlib.closing(ShardedBridge(self.addresses, **settings))

    def end(self):
        """Say that the training is over."""
        self._port.set_phase(Phase.CLOSING)

    def close(self):
        for index in list(self.others):  # before the first one: it waits for their calls
            self.stop_other(index)
        self.stop_first()


class Other:
    """Another shard than the first."""

    def __init__(self, shards, index, undivided, hears):
        shard, own = Shard(index, shards.count), shards.addresses[index - 1]
        self.part = undivided.divide(shard)
        self._first = FirstStub(shards.addresses[0], shard, own, self.part)
        parts = NoParts()
        if shards.place is not None:
            parts = SavedParts(DirectoryStore(shards.place / f"shard-{index}"))
        self.staging = Staging()
        self.follower = Follower(self.part, parts, self._first.report, self.staging)
        if hears is not None:
            run = self.follower.run
            self.follower.run = lambda said: run(hears(said))
        servicer = ShardServicer(self.follower, self.part.begin, self.part.size)
        service = OtherService(shard, shards.addresses[0], NullMetrics())
        self._port = GrpcParameterServer(
            own, service, [method_handlers(servicer)], vector_size=self.part.size
        )
        self.following = Following(self.follower, self._first)

    def close(self):
        self.following.close()
        self._port.stop(0.5)


def random_vectors(count, size, seed=1):
    """Gradients float32 [count, size]."""
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
