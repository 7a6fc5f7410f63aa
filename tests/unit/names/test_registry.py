"""What holds for each registry of names: that of a parameter server's port, and an etcd."""

import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import etcd
import pytest
from processes import free_port, wait_for

from relaax.names import NameTaken, Registration, RegistryAway
from relaax.names.leases import Leases
from relaax.names.paths import ETCD
from relaax.names.places import registry_at
from relaax.names.service import method_handlers
from relaax.net.guarded_server import GuardedServer

#: The shortest time of a lease: etcd has no shorter ones.
TTL_S = 2

#: A process that keeps a name until it is killed.
KEEPER = """
import sys, time
from relaax.names import Registration
from relaax.names.places import registry_at
Registration(registry_at(sys.argv[1]), "trial/streams/default/one", "here:1", 2)
print("registered", flush=True)
time.sleep(60)
"""


@pytest.fixture(name="etcd_address", scope="module")
def _etcd_address(tmp_path_factory):
    with etcd.running(Path(tmp_path_factory.mktemp("etcd"))) as address:
        yield f"{ETCD}{address}"


@pytest.fixture(name="server")
def _server():
    """A server of names at a port, and its memory."""
    server, address = GuardedServer(4, [method_handlers(Leases())]), f"localhost:{free_port()}"
    server.start(address)
    yield address
    server.stop(0).wait()


@pytest.fixture(
    name="address", params=["server", pytest.param("etcd_address", marks=etcd.needs_etcd)]
)
def _address(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(name="registry")
def _registry(address):
    with closing(registry_at(address)) as registry:
        yield registry


@pytest.fixture(name="root")
def _root(request):
    """A folder of names of this test alone."""
    return request.node.name.replace("[", "/").removesuffix("]")


def test_a_name_that_is_registered_is_resolved_until_it_is_withdrawn(registry, root):
    assert registry.resolve(f"{root}/a") is None
    lease = registry.register(f"{root}/a", "host:1", TTL_S)
    assert registry.resolve(f"{root}/a") == "host:1"
    registry.withdraw(lease)
    registry.withdraw(lease)
    assert registry.resolve(f"{root}/a") is None
    assert not registry.keep_alive(lease)


def test_a_name_has_one_owner(registry, root):
    registry.register(f"{root}/a", "host:1", TTL_S)
    with pytest.raises(NameTaken, match=f"{root}/a is taken"):
        registry.register(f"{root}/a", "host:2", TTL_S)
    assert registry.resolve(f"{root}/a") == "host:1"


def test_a_name_may_be_the_beginning_of_another(registry, root):
    for name in ("eval", "eval/one", "eval/one/two", "evaluation/one"):
        registry.register(f"{root}/{name}", name, TTL_S)
    assert registry.resolve(f"{root}/eval") == "eval"
    assert registry.below(f"{root}/eval") == {
        f"{root}/eval/one": "eval/one", f"{root}/eval/one/two": "eval/one/two",
    }  # fmt: skip
    assert registry.below(f"{root}/evaluation") == {f"{root}/evaluation/one": "evaluation/one"}
    assert registry.below(f"{root}/eva") == {}


@pytest.mark.parametrize("name", ["", "/a", "a//b", "a/", "a b", "a\n", "ä", "a/" * 300 + "b"])
def test_other_words_are_no_names(registry, name):
    with pytest.raises(ValueError, match="a name is a path"):
        registry.register(name, "", TTL_S)
    with pytest.raises(ValueError, match="a name is a path"):
        registry.below(name)


def test_values_and_times_have_limits(registry):
    with pytest.raises(ValueError, match="1024 bytes"):
        registry.register("a", "v" * 1025, TTL_S)
    with pytest.raises(ValueError, match="1 to 3600 seconds"):
        registry.register("a", "", 3601)


def test_a_process_that_lives_keeps_its_name_and_one_that_is_killed_leaves_it(registry, address):
    name = "trial/streams/default/one"
    command = [sys.executable, "-c", KEEPER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout.readline() == "registered\n"
        over_at = time.monotonic() + 2 * TTL_S
        wait_for(lambda: time.monotonic() > over_at, "the time of the first lease, and more")
        wait_for(lambda: registry.resolve(name) == "here:1", "the name")
        keeper.send_signal(signal.SIGKILL)
    wait_for(lambda: registry.resolve(name) is None, "the end of the lease", TTL_S + 15)


@contextmanager
def serving(address, *handlers):
    """Run a server at a port that another one may have had."""
    server = GuardedServer(4, list(handlers))
    server.start(address)
    try:
        yield
    finally:
        server.stop(0).wait()


def is_known(registry, name):
    try:
        return registry.resolve(name) is not None
    except RegistryAway:
        return False


def test_a_name_is_kept_through_refusals_and_a_registry_that_has_lost_its_memory(caplog):
    address = f"localhost:{free_port()}"
    with ExitStack() as resources:
        registry = resources.enter_context(closing(registry_at(address)))
        with serving(address, method_handlers(Leases())):
            registration = Registration(registry, "a", "host:1", 1)
        with serving(address):
            wait_for(lambda: "no parameter server of this version" in caplog.text, "a refusal")
        resources.enter_context(serving(address, method_handlers(Leases())))
        wait_for(lambda: is_known(registry, "a"), "the name")
        registration.close()
        assert registry.resolve("a") is None


def test_a_process_ends_in_order_where_its_registry_is_none_any_more():
    address = f"localhost:{free_port()}"
    with closing(registry_at(address)) as registry:
        with serving(address, method_handlers(Leases())):
            registration = Registration(registry, "a", "host:1", TTL_S)
        with serving(address):
            registration.close()


@pytest.mark.parametrize("before", ["", ETCD])
def test_a_registry_that_is_not_there_is_away(before):
    with (
        closing(registry_at(f"{before}localhost:{free_port()}")) as registry,
        pytest.raises(RegistryAway),
    ):
        registry.resolve("a")


def test_a_server_has_room_for_so_many_names_and_no_more():
    leases = Leases(most_names=1)
    server, address = GuardedServer(4, [method_handlers(leases)]), f"localhost:{free_port()}"
    server.start(address)
    with closing(registry_at(address)) as registry:
        registry.register("a", "", TTL_S)
        with pytest.raises(RegistryAway, match="there are 1 names already"):
            registry.register("b", "", TTL_S)
    server.stop(0).wait()
