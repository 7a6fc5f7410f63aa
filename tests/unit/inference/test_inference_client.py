"""A client finds the server that answers, and says which ones do not."""

from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from processes import free_port, wait_for

from relaax.address import Address
from relaax.algorithm_base.inference import ArrayForm, Question
from relaax.errors import BridgeError, ConfigurationError
from relaax.inference import client as client_module
from relaax.inference.batching import Batching
from relaax.inference.client import InferenceAway, InferenceClient
from relaax.inference.servers import GivenServers, servers_of
from relaax.inference.service import InferencePort
from relaax.names import NamedPlace, Registration
from relaax.names.leases import Leases
from relaax.names.places import reachable_address, registry_at
from relaax.names.service import method_handlers
from relaax.net.guarded_server import GuardedServer


class Server:
    """An inference server that may stop and start again, and counts what it has evaluated."""

    def __init__(self, local, resources):
        self.address = Address("127.0.0.1", free_port())
        self.url = str(self.address)
        self.evaluations = 0
        self._local, self._resources = local, resources

    def start(self):
        self._port = InferencePort(self.address, Batching(self._local, 128, self._count))
        self._resources.callback(self._port.close, 0)

    def stop(self):
        self._port.close(0)

    def _count(self, waits, environments, seconds):
        self.evaluations += 1


@pytest.fixture
def servers(local):
    with ExitStack() as resources:
        both = [Server(local, resources) for _ in range(2)]
        for each in both:
            each.start()
        yield both


def client_of(local, *servers, **options):
    client = InferenceClient(GivenServers([each.url for each in servers]), **options)
    client.expect(local.forms())
    return closing(client)


def test_a_question_has_the_answer_of_the_policy_that_it_names(local, servers, ask):
    with client_of(local, servers[0]) as client:
        for policy in ("default", "second"):
            question = ask(3, seed=4, policy=policy)
            answer, own = client.choose(question), local.choose(question)
            assert answer.version == own.version
            np.testing.assert_equal(answer.actions, own.actions)
            np.testing.assert_equal(dict(answer.extras), dict(own.extras))


def test_clients_of_other_numbers_ask_other_servers(local, servers, ask):
    for number in (0, 1, 2):
        with client_of(local, *servers, first=number) as client:
            client.choose(ask())
    assert [each.evaluations for each in servers] == [2, 1]


def test_the_same_question_has_the_same_answer_from_any_server(local, servers, ask):
    with client_of(local, servers[0]) as one, client_of(local, servers[1]) as other:
        answers = [replace(each.choose(ask()), times=None) for each in (one, other)]
    np.testing.assert_equal(*map(vars, answers))


def test_another_server_answers_when_one_stops_and_its_own_when_it_is_back(
    local, servers, ask, monkeypatch
):
    monkeypatch.setattr(client_module, "HOME_AGAIN_S", 0.0)
    with client_of(local, *servers) as client:
        client.choose(ask())
        servers[0].stop()
        client.choose(ask())
        assert [each.evaluations for each in servers] == [1, 1]
        servers[0].start()
        wait_for(lambda: client.choose(ask()) and servers[0].evaluations == 2, "its own server")


def test_a_client_waits_until_a_server_is_there(local, servers, ask):
    servers[0].stop()
    asked = []

    def goes_on():
        asked.append(True)
        if len(asked) == 2:
            servers[0].start()
        return True

    with client_of(local, servers[0], goes_on=goes_on) as client:
        assert len(client.choose(ask(3)).actions) == 3
    assert len(asked) >= 2


@pytest.mark.parametrize("options", [{"wait_s": -1.0}, {"goes_on": lambda: False}])
def test_an_error_names_all_servers_that_do_not_answer(local, servers, ask, options):
    for each in servers:
        each.stop()
    with client_of(local, *servers, **options) as client, pytest.raises(InferenceAway) as raised:
        client.choose(ask())
    assert all(each.url in str(raised.value) for each in servers)


def test_a_server_of_another_configuration_is_refused_with_the_arrays_that_differ(
    local, servers, ask
):
    forms = {**local.forms(), "extra/value": ArrayForm(np.dtype(np.float32), ())}
    forms["observation"] = ArrayForm(np.dtype(np.float32), (5,))
    with client_of(local, servers[0]) as client:
        client.expect(forms)
        with pytest.raises(ConfigurationError) as raised:
            client.choose(ask())
    assert "observation is float32 [5] here and float32 [2] there" in str(raised.value)
    assert "extra/value is float32 [] here and missing there" in str(raised.value)
    assert servers[0].url in str(raised.value)


def test_a_question_that_does_not_fit_is_refused_and_not_repeated(local, servers, ask):
    question = Question(**{**vars(ask(2)), "observations": np.zeros((2, 7), np.float32)})
    with client_of(local, *servers) as client, pytest.raises(BridgeError) as raised:
        client.choose(question)
    assert "observation of an environment has the shape (2,)" in str(raised.value)


@pytest.fixture(name="names")
def _names():
    """A registry of names at a port, and the name of servers there."""
    server = GuardedServer(4, [method_handlers(Leases())])
    server.start("127.0.0.1:0")
    yield NamedPlace.parse(f"names://127.0.0.1:{server.port}/one/streams/default")
    server.stop(0).wait()


@pytest.fixture(name="registered")
def _registered(names):
    """Registers servers below the name; returns what ends it as at the end of a process."""
    with closing(registry_at(names.registry)) as registry, ExitStack() as all_of_them:

        def registered(server, name):
            registration = Registration(registry, f"{names.name}/{name}", server.url)
            all_of_them.callback(registration.close)
            return registration

        yield registered


def test_servers_are_found_by_their_name_also_when_one_comes_back_at_another_port(
    local, servers, names, registered, ask
):
    client = InferenceClient(servers_of([str(names)]))
    client.expect(local.forms())
    with closing(client):
        first = registered(servers[0], "a")
        client.choose(ask())
        assert [each.evaluations for each in servers] == [1, 0]
        servers[0].stop()
        first.close()
        registered(servers[1], "b")
        client.choose(ask())
        assert [each.evaluations for each in servers] == [1, 1]


class FaultyLeases(Leases):
    """Names of a registry whose first answer is a refusal."""

    def __init__(self):
        super().__init__()
        self._refusals = 1

    def below(self, folder):
        if self._refusals:
            self._refusals -= 1
            raise ValueError("not now")
        return super().below(folder)


def test_servers_are_found_after_their_registry_has_refused_a_call(servers):
    names = GuardedServer(4, [method_handlers(FaultyLeases())])
    names.start("127.0.0.1:0")
    with (
        closing(registry_at(f"127.0.0.1:{names.port}")) as registry,
        closing(Registration(registry, "one/a", servers[0].url)),
        closing(servers_of([f"names://127.0.0.1:{names.port}/one"])) as found,
    ):
        wait_for(lambda: found.urls() == (servers[0].url,), "an address")
    names.stop(0).wait()


def test_a_name_that_no_server_has_is_named(local, names, ask):
    client = InferenceClient(servers_of([str(names)]), wait_s=-1.0)
    client.expect(local.forms())
    with closing(client), pytest.raises(InferenceAway, match=f"has the name {names}"):
        client.choose(ask())


def test_a_server_at_all_addresses_of_a_machine_is_told_by_the_one_to_the_registry(names):
    told = reachable_address(Address("0.0.0.0", 7), names)  # noqa: S104
    assert told == Address("127.0.0.1", 7)
    assert reachable_address(Address("here", 7), names) == Address("here", 7)
