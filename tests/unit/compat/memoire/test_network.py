"""Clients, servers and proxies in this process, over gRPC on the loopback interface."""

import threading
from contextlib import ExitStack, closing

import numpy as np
import pytest
from memoire_entries import ENTRY, NUMBER, entry
from processes import free_port, wait_for

from relaax.compat.memoire import (
    Bind,
    Conn,
    MemoryClosed,
    Proxy,
    ReplayMemoryClient,
    ReplayMemoryServer,
)
from relaax.compat.memoire.proxy import target_of
from relaax.errors import BridgeError, ConfigurationError, RelaaxError
from relaax.replay import replay_pb2
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.replay import NotReady
from relaax.replay.schema import Column, Schema


class Network(ExitStack):
    """Servers, clients and proxies of a test, each closed at its end."""

    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{free_port()}"

    def server(self, endpoint: str, template=ENTRY, n_slot: int = 4) -> ReplayMemoryServer:
        server = self.enter_context(closing(ReplayMemoryServer(template, 64, n_slot)))
        server.bind(endpoint)
        return server

    def client(self, endpoint: str, uuid: str = "", **endpoints) -> ReplayMemoryClient:
        made = ReplayMemoryClient(req_endpoint=endpoint, uuid=uuid, **endpoints)
        return self.enter_context(closing(made))

    def run(self, main, *arguments) -> None:
        """Run a method that returns when its object is closed."""
        thread = threading.Thread(target=main, args=arguments)
        thread.start()
        # Callbacks run in the opposite order: the object is closed before its thread is joined.
        self.callback(thread.join, 30)

    def proxy(self, kind: str, *arguments) -> None:
        made = Proxy()
        self.run(getattr(made, kind), *arguments)
        self.callback(made.close)


@pytest.fixture(name="network")
def _network():
    with Network() as network:
        yield network


def stored(server: ReplayMemoryServer) -> list[float]:
    """What is stored in slot 0, in order: as one rollout that ends with the newest entry."""
    server.rem.rollout_len = len(server.rem)
    fields, _ = server.get_data(1, timeout_s=30)
    return fields[0][0].tolist()


def test_entries_reach_the_memory_in_order(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    for number in range(50):
        client.add_entry(entry(number), is_term=number % 7 == 6)
    assert client.flush(30)
    assert stored(server) == list(range(50))
    assert server.rem.total_episodes == 7


def test_an_entrys_arrays_may_be_filled_again(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    template = client.template
    for number in range(5):
        template[0].fill(number)
        client.add_entry(template, False)
    client.flush(30)
    assert stored(server) == [0, 1, 2, 3, 4]


def test_pushed_data_is_stored_when_the_call_returns(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    client.push_data([entry(0), entry(1)], is_term=True)
    client.push_data([entry(2)], is_term=False)
    assert stored(server) == [0, 1, 2]
    assert server.rem.total_episodes == 1


def test_an_episode_that_is_cut_off_is_over(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    server.rem.do_padding, server.rem.rollout_len = True, 2
    client.push_data([entry(0), entry(1)], is_term=False)
    client.end_episode()
    client.push_data([entry(10)], is_term=False)
    fields, _ = server.get_data(100)
    assert {tuple(row) for row in fields[0].tolist()} == {(0, 0), (0, 1), (10, 10)}


def test_nothing_that_was_added_is_lost_when_a_client_is_closed(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    for number in range(3):
        client.add_entry(entry(number), False)
    client.close()
    assert stored(server) == [0, 1, 2]


def test_a_client_knows_its_slot_and_the_entries(network):
    endpoint = network.endpoint()
    server = network.server(endpoint, (np.zeros((2, 3), np.uint8), NUMBER, NUMBER, NUMBER))
    first, second = network.client(endpoint), network.client(endpoint)
    info = first.get_info()
    assert (info.num_slot, info.max_step, info.uuid) == (4, 64, server.rem.uuid)
    assert (first.rem.slot_index, second.rem.slot_index) == (0, 1)
    assert first.rem.entry_size == server.rem.entry_size == 6 + 4 * 4
    assert [part.shape for part in first.template] == [(2, 3), (), (), ()]
    assert [part.dtype for part in first.rem.view] == [np.uint8, *[np.float32] * 3]
    assert first.rem.reward_buf.shape == first.rem.value_buf.shape == first.rem.prob_buf.shape == ()


def test_a_client_by_name_alone_is_that_of_memoires_examples(network):
    endpoint = network.endpoint()
    server = network.server(endpoint)
    with closing(ReplayMemoryClient("client_test")) as client:
        client.req_endpoint = client.push_endpoint = endpoint
        assert client.uuid == "client_test"
        client.get_info()
        client.push_data([entry(1)], is_term=True)
    assert stored(server) == [1]


def test_an_entry_with_a_field_of_another_kind_is_refused_by_name(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    with pytest.raises(ConfigurationError, match=r"'entry.0.' is float64 .., and must be float32"):
        client.add_entry((np.zeros([]), NUMBER, NUMBER, NUMBER), False)
    with pytest.raises(ConfigurationError, match=r"'entry.1.' is not known"):
        client.add_entry((NUMBER, *entry(0)), False)
    client.push_data([entry(0)], is_term=True)
    assert stored(server) == [0]


def test_the_server_refuses_a_client_of_other_entries_by_name_and_serves_the_others(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    client.push_data([entry(0)], is_term=False)
    columns = {name: Column(np.dtype(np.float32)) for name in server.rem.schema.columns}
    columns["value"] = Column(np.dtype(np.float32), (2,))
    with (
        closing(ReplayStub(target_of(endpoint))) as stranger,
        pytest.raises(RelaaxError, match=r"'value' is float32 \[2\], and must be float32 \[\]"),
    ):
        stranger.open("stranger/1", Schema(columns))
    client.push_data([entry(1)], is_term=True)
    assert stored(server) == [0, 1]
    assert server.rem.total_episodes == 1


def test_more_clients_than_slots_are_refused_until_one_is_closed(network):
    endpoint = network.endpoint()
    network.server(endpoint, n_slot=1)
    first, second = network.client(endpoint), network.client(endpoint)
    first.push_data([entry(0)], is_term=False)
    with pytest.raises(ReplayAway, match="all 1 slots are taken"):
        second.get_info(timeout_s=0)
    first.close()
    assert second.get_info(timeout_s=30).slot_index == 0


def test_a_client_that_is_connected_keeps_its_slot_though_it_sends_nothing(network):
    endpoint, front = network.endpoint(), network.endpoint()
    server = network.enter_context(closing(ReplayMemoryServer(ENTRY, 64, 1, lease_s=1.0)))
    server.bind(endpoint)
    network.proxy("rep_proxy_main", front, Bind, endpoint, Conn)
    assert network.client(front).rem.slot_index == 0
    with pytest.raises(ReplayAway, match="all 1 slots are taken"):
        network.client(endpoint).get_info(timeout_s=1.6)


def test_the_older_of_two_clients_of_one_name_is_told(network):
    endpoint = network.endpoint()
    network.server(endpoint)
    older, newer = network.client(endpoint, "robot"), network.client(endpoint, "robot")
    older.push_data([entry(0)], is_term=False)
    newer.push_data([entry(1)], is_term=False)
    with pytest.raises(BridgeError, match="another client with the uuid 'robot' has taken"):
        older.push_data([entry(2)], is_term=False)
    newer.push_data([entry(3)], is_term=True)


def test_a_client_waits_for_a_server_that_starts_later(network):
    endpoint = network.endpoint()
    client = network.client(endpoint)
    with pytest.raises(ReplayAway):
        client.get_info(timeout_s=0)
    network.server(endpoint)
    assert client.get_info(timeout_s=30).slot_index == 0


def test_a_learner_elsewhere_draws_what_the_servers_own_draws(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    server.rem.rollout_len = 2
    with pytest.raises(NotReady, match="0 of the 1 items with which learning begins"):
        client.get_data(1, timeout_s=0)
    client.push_data([entry(0), entry(1), entry(2)], is_term=True)
    fields, weights = client.get_data(50)
    assert [field.shape for field in fields] == [(50, 2)] * 5
    assert {tuple(row) for row in fields[0].tolist()} == {(0, 1), (1, 2)}
    assert weights.tolist() == [1] * 50
    sample = client.sample(50)
    assert sample.probabilities.tolist() == [0.5] * 50
    server.rem.multi_step = 1
    before, after, _ = client.get_data(50)
    pairs = zip(before[0][:, 1].tolist(), after[0][:, 1].tolist(), strict=True)
    assert set(pairs) == {(1, 2), (2, 2)}


def test_a_late_subscriber_gets_the_current_message(network):
    endpoint = network.endpoint()
    server = network.server(endpoint)
    server.pub_bytes("model", b"first")
    server.pub_bytes("model", b"second")
    client = network.client(endpoint)
    assert client.sub_bytes("model", timeout_s=30) == b"second"
    with pytest.raises(NotReady, match="nothing new was published under 'model'"):
        client.sub_bytes("model", timeout_s=0)
    server.pub_bytes("model", "third")
    assert client.sub_bytes("model") == b"third"


def test_a_learner_elsewhere_publishes_through_the_server(network):
    endpoint = network.endpoint()
    network.server(endpoint)
    learner, actor = network.client(endpoint), network.client(endpoint)
    learner.pub_bytes("model", b"parameters")
    assert actor.sub_bytes("model", timeout_s=30) == b"parameters"


def test_a_subscriber_that_waits_gets_what_comes(network):
    endpoint = network.endpoint()
    server, client = network.server(endpoint), network.client(endpoint)
    large = bytes(5_000_000)
    received: list[bytes] = []
    network.run(lambda: received.append(client.sub_bytes(timeout_s=30)))
    server.pub_bytes(large)
    wait_for(lambda: received, "the message")
    assert received == [large]


def test_the_publishing_endpoint_may_be_one_of_its_own(network):
    endpoint = network.endpoint()
    with closing(ReplayMemoryServer(ENTRY, 4, 1)) as server:
        with pytest.raises(ConfigurationError, match="set pub_endpoint"):
            server.pub_bytes("model", b"1")
        server.pub_endpoint = endpoint
        server.pub_bytes("model", b"1")
        assert network.client("", sub_endpoint=endpoint).sub_bytes("model", 30) == b"1"


def test_subscribers_that_wait_take_no_thread_from_those_who_push(network):
    endpoint = network.endpoint()
    server, actor = network.server(endpoint), network.client(endpoint)
    received: list[bytes] = []
    for _ in range(80):
        waiting = network.client(endpoint)
        network.run(lambda client=waiting: received.append(client.sub_bytes("late", 60)))
    actor.push_data([entry(0)], is_term=True, timeout_s=30)
    assert received == []
    server.pub_bytes("late", b"now")
    wait_for(lambda: len(received) == 80, "the message at all subscribers")


def test_calls_beyond_the_high_water_mark_are_refused_and_can_be_tried_again(network):
    endpoint = network.endpoint()
    with closing(ReplayMemoryServer(ENTRY, 4, 1)) as server:
        server.bind(endpoint, hwm=1)
        waiting, actor = network.client(endpoint), network.client(endpoint)
        told = []
        network.run(lambda: told.append(waiting.sub_bytes("late", 60)))
        wait_for(lambda: not logs(actor), "a call that is refused")
        server.pub_bytes("late", b"now")
        wait_for(lambda: logs(actor), "a call that is answered")
        wait_for(lambda: told == [b"now"], "the message")  # its call may have been refused, too


def logs(client: ReplayMemoryClient) -> bool:
    try:
        client.push_log("here")
    except NotReady:
        return False
    return True


def test_many_clients_push_beside_each_other(network):
    endpoint = network.endpoint()
    server = network.server(endpoint)
    clients = [network.client(endpoint) for _ in range(4)]
    for client in clients:
        client.get_info()

    def act(client: ReplayMemoryClient) -> None:
        for number in range(300):
            client.add_entry(entry(1000 * client.rem.slot_index + number), number % 9 == 8)
        client.flush(30)

    threads = [threading.Thread(target=act, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    server.rem.rollout_len = 64
    fields, _ = server.get_data(100)
    rollouts = {tuple(rollout) for rollout in fields[0].tolist()}
    assert rollouts == {tuple(range(k * 1000 + 236, k * 1000 + 300)) for k in range(4)}
    assert server.rem.total_steps == 1200


def test_what_waits_ends_when_its_client_is_closed(network):
    endpoint = network.endpoint()
    network.server(endpoint)
    client = network.client(endpoint)
    ends: list[type] = []

    def subscribe():
        try:
            client.sub_bytes("model")
        except MemoryClosed as error:
            ends.append(type(error))

    network.run(subscribe)
    network.run(client.push_worker_main)
    client.close()
    wait_for(lambda: ends == [MemoryClosed], "the end of the subscriber")


def test_messages_of_clients_are_written_to_the_log_file(network, tmp_path):
    endpoint = network.endpoint()
    server = network.server(endpoint)
    client = network.client(endpoint, "robot")
    client.push_log("goes nowhere")
    server.set_logfile(tmp_path / "actors.log", "w")
    client.push_log("reward, 5\n")
    time, uuid, message = (tmp_path / "actors.log").read_text().rstrip("\n").split(",", 2)
    assert float(time) > 1e9
    assert (uuid, message) == ("robot", "reward, 5")
    with pytest.raises(BridgeError, match="at most 65536 characters"):
        client.push_log("x" * 70_000)


def test_the_threads_of_memoires_examples_serve_and_end(network):
    """A proxy in front of workers of the same server, as ``example/server.py`` has them."""
    requests, pushes, publications = (network.endpoint() for _ in range(3))
    server = ReplayMemoryServer(ENTRY, 64, 4)
    server.pub_endpoint = publications
    network.run(server.rep_proxy_main, requests, Bind, "inproc://rep_workers", Bind)
    network.run(server.rep_worker_main, "inproc://rep_workers", Conn)
    network.run(server.pull_worker_main, pushes, Bind)
    network.enter_context(closing(server))
    client = network.enter_context(closing(ReplayMemoryClient(publications, requests, pushes)))
    client.push_data([entry(0)], is_term=True)
    server.pub_bytes("model", b"1")
    assert client.sub_bytes("model", 30) == b"1"
    assert stored(server) == [0]


def test_entries_and_messages_go_through_proxies(network, tmp_path):
    """Two proxies, one behind the other."""
    behind, between, front = (network.endpoint() for _ in range(3))
    publications, nearer = network.endpoint(), f"ipc://{tmp_path}/publications"
    server = network.server(behind)
    network.proxy("rep_proxy_main", between, Bind, behind, Conn)
    network.proxy("pull_proxy_main", front, Bind, between, Conn, 32)
    network.proxy("pub_proxy_main", behind, Conn, publications, Bind)
    network.proxy("pub_proxy_main", publications, Conn, nearer, Bind)
    server.set_logfile(tmp_path / "log", "w")
    server.pub_bytes("model", b"current")
    client = network.client(front, "robot", sub_endpoint=nearer)
    client.push_data([entry(0), entry(1)], is_term=True)
    client.push_log("through proxies")
    assert stored(server) == [0, 1]
    assert client.get_data(1)[0][0].tolist() == [[0, 1]]
    assert (tmp_path / "log").read_text().endswith(",robot,through proxies\n")
    assert client.sub_bytes("model", 30) == b"current"
    server.pub_bytes("model", b"next")
    assert client.sub_bytes("model", 30) == b"next"


def test_a_proxy_fetches_a_message_once_for_all_who_wait_for_it(network):
    behind, front = network.endpoint(), network.endpoint()
    server = network.server(behind)
    network.proxy("pub_proxy_main", behind, Conn, front, Bind)
    server.pub_bytes("model", b"1")
    clients = [network.client("", sub_endpoint=front) for _ in range(8)]
    assert [client.sub_bytes("model", 30) for client in clients] == [b"1"] * 8
    fetched = []
    topics = server._topics  # noqa: SLF001
    newest = topics.newest
    topics.newest = lambda *asked: fetched.append(newest(*asked)) or fetched[-1]
    received: list[bytes] = []
    for client in clients:
        network.run(lambda client=client: received.append(client.sub_bytes("model", 60)))
    wait_for(lambda: fetched, "subscribers that wait")
    server.pub_bytes("model", b"2")
    wait_for(lambda: received == [b"2"] * 8, "the message at all subscribers")
    assert sum(answer is not None for answer in fetched) < 8


def test_a_refusal_comes_through_a_proxy_as_it_is(network):
    behind, front = network.endpoint(), network.endpoint()
    network.server(behind, n_slot=1)
    network.proxy("rep_proxy_main", front, Bind, behind, Conn)
    network.client(behind).get_info()
    with pytest.raises(ReplayAway, match="all 1 slots are taken"):
        wait_for(lambda: _refusal_of_slots(network.client(front)), "the proxy")


def _refusal_of_slots(client: ReplayMemoryClient) -> None:
    try:
        client.get_info(timeout_s=0)
    except ReplayAway as error:
        if "slots" in str(error):
            raise


def test_ends_that_cannot_work_are_refused(network):
    a, b = network.endpoint(), network.endpoint()
    proxy = Proxy()
    with pytest.raises(ConfigurationError, match="its modes are Bind and Conn, not Bind and Bind"):
        proxy.rep_proxy_main(a, Bind, b, Bind)
    with pytest.raises(ConfigurationError, match="its modes are Conn and Bind, not Bind and Conn"):
        proxy.pub_proxy_main(a, Bind, b, Conn)
    with closing(ReplayMemoryServer(ENTRY, 4, 1)) as server:
        with pytest.raises(ConfigurationError, match="let the worker bind"):
            server.rep_worker_main(a, Conn)
        server.bind(a)
        with (
            closing(ReplayMemoryServer(ENTRY, 4, 1)) as other,
            pytest.raises(OSError, match=f"cannot listen at {target_of(a)}"),
        ):
            other.bind(a)


def test_a_server_prints_what_it_is(network, capsys):
    with closing(ReplayMemoryServer(ENTRY, 4, 3)) as server:
        server.print_info()
    assert "3 slots of 4 entries: entry[0] float32 []" in capsys.readouterr().out


@pytest.mark.parametrize("field", [1, 2, 3])
def test_a_reward_a_probability_or_a_value_that_is_not_finite_is_refused(network, caplog, field):
    endpoint = network.endpoint()
    server = network.server(endpoint)
    stub = ReplayStub(target_of(endpoint))
    network.callback(stub.close)
    stub.open("a/1", server.rem.schema)
    columns = [np.full(2, number, np.float32) for number in (np.nan, 1, 0, -1)]
    run = replay_pb2.Run(environment=0, first=0, count=2)
    flags = np.zeros(2, np.uint8)
    assert stub.append("a/1", [run], flags, columns) == [2]  # a field of the user's own may be NaN
    columns[field][1] = np.nan
    run = replay_pb2.Run(environment=0, first=2, count=2)
    with pytest.raises(BridgeError, match=r"is not finite \(sent from 127\.0\.0\.1:\d+\)"):
        stub.append("a/1", [run], flags, columns)
    assert len(server.rem) == 2
    assert "was refused: column" in caplog.text
