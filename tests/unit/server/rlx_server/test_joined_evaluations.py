"""The messages of connections that are ready together, answered by one evaluation."""

import os

import numpy as np
import pytest
from json_requests import Act, RewardAndAct, RewardAndReset
from served_worker import BinaryClient, JsonClient

from relaax.protocol import binary
from relaax.protocol.binary import Metric
from relaax.steps import ENDED, FINAL, START, TERMINATED, TRUNCATED, wants_action

CUT = TRUNCATED | FINAL
SIZES = (1, 3, 1, 8, 2)


def started(served, *sizes):
    """Return clients whose environments have all begun an episode, and their slots."""
    clients = [BinaryClient(served, size) for size in sizes]
    slots = []
    for client in clients:
        size = client.environments
        answer = client.ask(range(size), [START] * size, [0] * size, [0] * size)
        slots.append(answer.actions[:, 0].astype(int).tolist())
    return clients, slots


def started_in_version_1(served):
    client = JsonClient(served)
    client.tell(Act([0]))
    return client, int(client.action()[0])


def test_connections_that_are_ready_together_are_answered_by_one_evaluation(serve, oracle):
    served = serve()
    clients, slots = started(served, 1, 4, 2)
    oracle.sizes.clear()
    for number, client in enumerate(clients):
        size = client.environments
        client.tell(range(size), [0] * size, [0] * size, [number] * size)
    served.turn()
    assert oracle.sizes == [7]
    for number, client in enumerate(clients):
        actions = client.answer().actions
        assert actions[:, 0].tolist() == slots[number]
        assert set(actions[:, 1].tolist()) == {number}


@pytest.mark.parametrize(
    ("clients", "learns", "turns"), [(2, False, [0]), (2, True, []), (1, False, [])]
)
def test_a_worker_that_only_serves_lets_its_clients_run_before_it_looks_for_messages(
    serve, oracle, monkeypatch, clients, learns, turns
):
    """More of them are answered together then; a learner's thread would take the time itself."""
    yielded = []
    monkeypatch.setattr(os, "sched_yield", lambda: yielded.append(len(oracle.sizes)))
    monkeypatch.setattr(type(oracle), "learns", learns)
    served = serve()
    (client, *_), _ = started(served, *[1] * clients)
    yielded.clear()
    oracle.sizes.clear()
    client.tell([0], [0], [0], [1])
    served.turn()
    assert yielded == turns
    assert oracle.sizes == [1]


def test_both_versions_are_answered_by_one_evaluation(serve, oracle):
    served = serve()
    (second,), (second_slots,) = started(served, 3)
    first, first_slot = started_in_version_1(served)
    oracle.sizes.clear()
    first.tell(RewardAndAct(1.0, [10]))
    second.tell([2, 0], [0, 0], [1, 1], [12, 13])
    served.turn()
    assert oracle.sizes == [3]
    assert first.action().tolist() == [first_slot, 10]
    expected = [[second_slots[2], 12], [second_slots[0], 13]]
    assert second.answer().actions.tolist() == expected


def test_states_that_arrive_in_other_forms_are_joined(serve, oracle):
    """Version 1 has lists, version 2 arrays of any type of numbers."""
    served = serve()
    (floats, doubles), _ = started(served, 2, 2)
    lists, _ = started_in_version_1(served)
    oracle.sizes.clear()
    floats.tell([0, 1], [0, 0], [0, 0], np.array([[1], [2]], np.float32))
    doubles.tell([0, 1], [0, 0], [0, 0], np.array([[3], [4]], np.float64))
    lists.tell(RewardAndAct(0.0, [5]))
    served.turn()
    assert oracle.sizes == [5]
    assert floats.answer().actions[:, 1].tolist() == [1, 2]
    assert doubles.answer().actions[:, 1].tolist() == [3, 4]
    assert lists.action()[1] == 5


@pytest.mark.parametrize(
    ("flags", "states", "finals", "reported", "scores"),
    [
        ([0], [5], [], [("reward", 9.0), ("state", 5.0)], []),
        ([START], [5], [], [("given up",), ("start", 5.0)], []),
        ([TERMINATED], [], [], [("reward", 9.0), ("terminated",)], [9.0]),
        ([TERMINATED | FINAL], [], [7], [("reward", 9.0), ("terminated",)], [9.0]),
        (
            [TERMINATED | START], [5], [],
            [("reward", 9.0), ("terminated",), ("start", 5.0)], [9.0],
        ),
        ([CUT], [], [7], [("reward", 9.0), ("truncated", 7.0)], [9.0]),
        (
            [CUT | START], [5], [7],
            [("reward", 9.0), ("truncated", 7.0), ("start", 5.0)], [9.0],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("position", [0, 1, 2])
def test_every_kind_of_report_keeps_to_its_own_connection(
    serve, oracle, flags, states, finals, reported, scores, position
):
    """One connection reports something beside two others that take a plain step."""
    served = serve()
    clients, slots = started(served, 1, 1, 1)
    oracle.reported.clear()
    for number, client in enumerate(clients):
        if number == position:
            client.tell([0], flags, [9 if flags != [START] else 0], states, finals)
        else:
            client.tell([0], [0], [number + 0.5], [number + 0.25])
    served.turn()
    for number, client in enumerate(clients):
        answer, (slot,) = client.answer(), slots[number]
        if number == position:
            assert answer.actions.tolist() == [[slot, state] for state in states]
            assert answer.scores.tolist() == scores
            assert oracle.reported[slot] == reported
        else:
            assert answer.actions.tolist() == [[slot, number + 0.25]]
            assert answer.scores.tolist() == []
            assert oracle.reported[slot] == [("reward", number + 0.5), ("state", number + 0.25)]


def test_an_end_in_version_1_is_answered_beside_steps_in_version_2(serve):
    served = serve()
    (second,), ((slot,),) = started(served, 1)
    first, _ = started_in_version_1(served)
    first.tell(RewardAndReset(2.5))
    second.tell([0], [0], [1], [6])
    served.turn()
    assert first.score() == 2.5
    assert second.answer().actions.tolist() == [[slot, 6]]


class Player:
    """A client of several environments that plays by chance, and what it should be told."""

    def __init__(self, served, number, size):
        self.client = BinaryClient(served, size)
        self.number, self.size = number, size
        self.reported = [[] for _ in range(size)]
        self.scores = np.zeros(size)
        self.is_running = np.zeros(size, np.bool_)
        self.expected = None

    def play(self, step, generator):
        """Report for some of the environments."""
        environments = generator.permutation(self.size)[: generator.integers(1, self.size + 1)]
        choices = [0, 0, 0, 0, START, TERMINATED, TERMINATED | START, CUT, CUT | START]
        flags = generator.choice(choices, len(environments))
        flags = np.where(self.is_running[environments], flags, START)
        rewards = self.number * 10_000 + step * 10 + environments.astype(float)
        rewards[flags == START] = 0.0
        acting, ends_in = wants_action(flags), (flags & FINAL) != 0
        seen = self.number * 1000 + step + environments[acting] / 16
        finals = self.number * 1000 + step + environments[ends_in] / 16 + 1 / 64
        self.expected = environments, acting, seen, self._note(environments, flags, rewards, step)
        self.client.tell(environments, flags, rewards, seen, finals)

    def _note(self, environments, flags, rewards, step):
        scores = []
        for environment, flag, reward in zip(environments, flags, rewards, strict=True):
            what, state = (
                self.reported[environment], self.number * 1000 + step + environment / 16
            )  # fmt: skip
            if flag & ENDED or not flag & START:
                what.append(("reward", reward))
                self.scores[environment] += reward
            if flag & TERMINATED:
                what.append(("terminated",))
            if flag & TRUNCATED:
                what.append(("truncated", state + 1 / 64))
            if flag == START and self.is_running[environment]:
                what.append(("given up",))
            if flag & ENDED:
                scores.append(self.scores[environment])
            if flag & START:
                what.append(("start", state))
            elif not flag & ENDED:
                what.append(("state", state))
            if flag & (ENDED | START):
                self.scores[environment] = 0.0
                self.is_running[environment] = bool(flag & START)
        return scores

    def check(self, slots):
        """Compare the answer with what should be in it."""
        environments, acting, seen, scores = self.expected
        answer = self.client.answer()
        assert answer.environments.tolist() == environments.tolist()
        assert answer.scores.tolist() == scores
        found = answer.actions.reshape(-1, 2)
        assert found[:, 0].tolist() == slots[environments[acting]].tolist()
        assert found[:, 1].tolist() == seen.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_connections_of_any_size_get_their_own_answers_in_any_mixture(serve, oracle, seed):
    """Some of five connections at once, with ends and starts in many places."""
    generator = np.random.default_rng(seed)
    served = serve()
    players = [Player(served, number, size) for number, size in enumerate(SIZES)]
    ends = np.cumsum(SIZES)
    slots = [np.arange(end - size, end) for end, size in zip(ends, SIZES, strict=True)]
    for step in range(100):
        playing = [player for player in players if generator.random() < 0.7]
        for player in playing:
            player.play(step, generator)
        served.turn()
        for player in playing:
            player.check(slots[player.number])
    for player in players:
        for environment, reported in enumerate(player.reported):
            assert oracle.reported[slots[player.number][environment]] == reported
    assert max(oracle.sizes) > max(SIZES)


def test_a_connection_is_answered_once_a_turn(serve, oracle):
    served = serve()
    (fast, slow), _ = started(served, 1, 1)
    oracle.sizes.clear()
    for _ in range(3):
        fast.tell([0], [0], [0], [1])
    slow.tell([0], [0], [0], [1])
    for _ in range(3):
        served.turn()
    assert oracle.sizes == [2, 1, 1]


def test_metrics_with_long_names_are_stored_in_their_order_and_not_answered(serve):
    served = serve()
    (client,), _ = started(served, 1)
    name = "\N{SNOWMAN}" * 85
    for y in range(100):
        client.connection.send(binary.encode_metric(Metric(name, y, 7.0)))
    assert client.ask([0], [0], [0], [3]).actions.tolist() == [[0, 3]]
    assert served.stored.values == [(f"client/{name}", float(y), 7.0) for y in range(100)]
