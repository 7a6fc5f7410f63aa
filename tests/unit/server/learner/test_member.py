"""A learner carries out the orders of a population's manager, each once."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from processes import REPOSITORY, free_port, wait_for

from relaax.algorithm_base import Learner
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.configuration import AlgorithmSection, LearnerConfiguration, LearnerOptions
from relaax.errors import CheckpointError, CheckpointMismatch, ConfigurationError
from relaax.net.guarded_server import GuardedServer
from relaax.populations.membership import Done, Membership, Order
from relaax.populations.service import method_handlers
from relaax.server.learner.builder import RestoredLearner, checkpoint_of
from relaax.server.learner.lineage import lineage_in
from relaax.server.learner.member import join_population, with_order

FINGERPRINT = {"learner of": "counting"}


class Holding(Learner):
    """A learner with three numbers."""

    inputs = MappingProxyType({})

    def __init__(self, *numbers):
        self.numbers = np.array(numbers, np.float32)

    def steps(self, batches):
        yield from ()

    def values(self):
        return {"default": self.numbers}

    def state(self):
        return {"numbers": self.numbers}

    def restore(self, state):
        self.numbers = state["numbers"]


class Place:
    """A parameter server and the folder of a learner."""

    def __init__(self, resources, directory, *numbers):
        self.membership = Membership(DirectoryStore(directory / "server"))
        resources.enter_context(self.served(self.membership))
        self.directory = directory
        self.resources = resources
        self.numbers = numbers

    @contextlib.contextmanager
    def served(self, membership):
        """A parameter server at a port that the learner knows from then on."""
        server = GuardedServer(4, [method_handlers(membership)])
        address = f"localhost:{free_port()}"
        server.start(address)
        options = LearnerOptions.model_validate({"--parameter-server": address})
        parameters = {"rate": 1.0, "inner": {"a": 1, "b": 2}}
        section = AlgorithmSection(REPOSITORY, parameters, REPOSITORY)
        self.configuration = LearnerConfiguration(options, section)
        try:
            yield
        finally:
            server.stop(0).wait()

    def restored(self, iteration):
        """The learner as it starts, with so many steps behind it."""
        store = DirectoryStore(self.directory / "learner")
        saver = CheckpointSaver(store, keep=1)
        self.resources.callback(saver.close)
        lineage = lineage_in(store, iteration, is_afresh=False)
        learner = Holding(*self.numbers)
        return RestoredLearner(learner, iteration, saver, store, FINGERPRINT, lineage)

    @contextlib.contextmanager
    def member(self):
        found = join_population(self.configuration, threading.Event())
        with contextlib.closing(found):
            yield found


@pytest.fixture(name="place")
def _place(tmp_path):
    with contextlib.ExitStack() as resources:
        yield Place(resources, tmp_path / "own", 1, 2, 3)


@pytest.fixture(name="order")
def _order(tmp_path):
    """An order to take what another learner has saved with its step 40."""
    with contextlib.closing(CheckpointSaver(DirectoryStore(tmp_path / "other"), 1)) as saver:
        saver.save(checkpoint_of(Holding(7, 8, 9), 40, FINGERPRINT))
    return Order(1, {"rate": 0.5, "inner": {"b": 3}}, "other", str(tmp_path / "other"))


def test_an_order_gives_new_parameters_the_next_version(place, order):
    place.membership.give(order)
    with place.member() as member:
        restored = member.carry_out(place.restored(12), 12, threading.Event())
    assert restored.iteration == 13
    np.testing.assert_array_equal(restored.learner.numbers, [7, 8, 9])
    assert place.membership.done == Done(1, 13, 40)
    saved = CheckpointSaver(DirectoryStore(place.directory / "learner"), keep=1).restore_latest()
    assert saved.version == 13
    np.testing.assert_array_equal(saved.tensors["numbers"], [7, 8, 9])


def test_an_order_waits_for_room_for_its_checkpoint(place, order, monkeypatch, caplog):
    place.membership.give(order)
    restored, save, failures = place.restored(12), CheckpointSaver.save, ["no space left"]

    def save_later(saver, checkpoint):
        if failures:
            raise CheckpointError(failures.pop())
        save(saver, checkpoint)

    monkeypatch.setattr(CheckpointSaver, "save", save_later)
    with place.member() as member:
        member.carry_out(restored, 12, threading.Event())
    assert "waiting for the checkpoint of an order: no space left" in caplog.text
    assert place.membership.done == Done(1, 13, 40)


def test_an_order_is_carried_out_once_and_said_again_after_a_restart(place, order):
    place.membership.give(order)
    with place.member() as member:
        member.carry_out(place.restored(12), 12, threading.Event())
    place.membership.done = Done()  # the parameter server has not heard of it
    with place.member() as member:
        restored = member.carry_out(place.restored(20), 20, threading.Event())
    assert restored.iteration == 20
    np.testing.assert_array_equal(restored.learner.numbers, [1, 2, 3])
    assert place.membership.done == Done(1, 13, 40)


def test_without_an_order_a_learner_is_what_it_was(place):
    with place.member() as member:
        restored = place.restored(12)
        assert member.carry_out(restored, 12, threading.Event()) is restored
        assert not member.has_new_order


def test_a_new_order_is_noticed(place, order):
    with place.member() as member:
        place.membership.give(order)
        wait_for(lambda: member.has_new_order, "the order")
        assert member.order == Order()  # what the learner was made with


def test_the_hyperparameters_of_an_order_replace_those_of_the_section(place, order):
    section = with_order(place.configuration, order).algorithm
    assert section.parameters == {"rate": 0.5, "inner": {"a": 1, "b": 3}}


def test_new_parameters_are_newer_than_all_that_were_published(place, order):
    place.membership.give(order)
    with place.member() as member:  # it was killed, and goes on from a checkpoint of before
        restored = member.carry_out(place.restored(12), 50, threading.Event())
    assert restored.iteration == 51
    assert place.membership.done == Done(1, 51, 40)


def test_another_order_with_the_same_number_is_carried_out(place, order):
    place.membership.give(order)
    with place.member() as member:
        member.carry_out(place.restored(12), 12, threading.Event())
    place.membership = forgetful = Membership(DirectoryStore(place.directory / "another"))
    with place.served(forgetful):
        forgetful.give(replace(order, hyperparameters={"rate": 0.7}))
        with place.member() as member:
            restored = member.carry_out(place.restored(20), 20, threading.Event())
    assert restored.iteration == 21


def test_an_order_that_does_not_fit_is_refused_and_said_once(place, order):
    place.membership.give(order)
    place.numbers = (1, 2)
    with place.member() as member:
        with pytest.raises(CheckpointMismatch):
            member.carry_out(place.restored(12), 12, threading.Event())
        assert member.refuses("other shapes", threading.Event())
        assert not member.refuses("again", threading.Event())
    assert place.membership.done == Done(1, refused="other shapes")
    with place.member() as member:  # the learner as it was before
        restored = member.carry_out(place.restored(12), 12, threading.Event())
        assert not member.refuses("a mistake of its own", threading.Event())
    np.testing.assert_array_equal(restored.learner.numbers, [1, 2])


def test_a_checkpoint_that_is_not_there_yet_is_waited_for_until_the_stop(place, order, caplog):
    place.membership.give(replace(order, checkpoints=str(place.directory / "nowhere")))
    stop = threading.Event()
    with place.member() as member, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(member.carry_out, place.restored(12), 12, stop)
        wait_for(lambda: "waiting for a checkpoint of other" in caplog.text, "the warning")
        stop.set()
    assert waiting.result().iteration == 12


def test_a_checkpoint_that_does_not_come_is_a_reason_to_refuse(place, order):
    place.membership.give(replace(order, checkpoints=str(place.directory / "nowhere")))
    options = place.configuration.options.model_copy(update={"give_up": 1e-3})
    place.configuration = replace(place.configuration, options=options)
    with place.member() as member:
        with pytest.raises(ConfigurationError, match=r"no checkpoint of other .*--give-up") as why:
            member.carry_out(place.restored(12), 12, threading.Event())
        assert member.refuses(str(why.value), threading.Event())
    assert place.membership.done.refused == str(why.value)
