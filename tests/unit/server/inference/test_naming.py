"""An inference server takes its name once the registry answers."""

import threading
from contextlib import ExitStack, closing

import pytest
from processes import free_port, wait_for

from relaax.address import Address
from relaax.errors import Abandoned
from relaax.names import NamedPlace
from relaax.names.leases import Leases
from relaax.names.places import registry_at
from relaax.names.service import method_handlers
from relaax.net.guarded_server import GuardedServer
from relaax.server.inference import main

SERVER = Address("127.0.0.1", 7)


@pytest.fixture(name="place")
def _place():
    return NamedPlace.parse(f"names://127.0.0.1:{free_port()}/trial/streams/default")


def test_a_registry_that_comes_later_is_waited_for(place, monkeypatch, caplog):
    monkeypatch.setattr(main, "LOOK_S", 0.05)
    stop, names = threading.Event(), GuardedServer(4, [method_handlers(Leases())])
    with ExitStack() as resources, closing(registry_at(place.registry)) as registry:
        thread = threading.Thread(target=main.register, args=(place, SERVER, stop, 60.0, resources))
        thread.start()
        wait_for(lambda: f"waiting for the registry of {place}" in caplog.text, "a refusal")
        names.start(place.registry)
        thread.join(60)
        assert list(registry.below(place.name).values()) == [str(SERVER)]
    names.stop(0).wait()


def test_a_registry_that_stays_away_is_named(place):
    with ExitStack() as resources, pytest.raises(Abandoned, match=f"the registry of {place}"):
        main.register(place, SERVER, threading.Event(), 0.0, resources)
