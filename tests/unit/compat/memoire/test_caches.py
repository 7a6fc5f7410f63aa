"""Clients that keep their entries and send samples, as with Memoire's version 3."""

from contextlib import closing

import numpy as np
import pytest
from memoire_entries import ENTRY, entry, memory_of, push
from processes import free_port
from scipy import stats

from relaax.compat.memoire import NotReady, ReplayMemoryClient, ReplayMemoryServer


def caching(n_slot: int = 2, **settings):
    return memory_of(8, n_slot, cache_size=64, **settings)


def test_what_is_drawn_is_as_probable_as_of_one_memory():
    """Of slots whose weights sum to 1 and 3; the caches are drawn anew each time."""
    server, clients = caching(), [memory_of(8, 1, priority_exponent=1.0) for _ in range(2)]
    push(clients[0], [0, 1], True, rewards=[1, 1], values=[0, 0])
    push(clients[1], [10, 11, 12], True, rewards=[5, 3, 1], values=[0, 0, 0])
    weights = {0.0: 2.0, 1.0: 1.0, 10.0: 9.0, 11.0: 4.0, 12.0: 1.0}
    drawn: list[float] = []
    for _ in range(100):
        for slot, client in enumerate(clients):
            server.put_cache(slot, client.sample(64), client.total_weight)
        sample = server.sample(64)
        drawn += sample.columns["entry[0]"][:, 0].tolist()
    found, counts = np.unique(drawn, return_counts=True)
    expected = np.array([weights[number] for number in found.tolist()]) / 17
    assert stats.chisquare(counts, expected * 6400).pvalue > 1e-3
    of_last = dict(zip(drawn[-64:], sample.probabilities.tolist(), strict=True))
    assert of_last == pytest.approx({number: weights[number] / 17 for number in of_last})
    assert (sample.items, sample.least_probability) == (5, pytest.approx(1 / 17))


def test_an_item_is_drawn_once_unless_caches_are_reused():
    server, client = caching(1), memory_of(8, 1)
    push(client, range(4), is_term=True)
    sent = client.sample(64)
    server.put_cache(0, sent, client.total_weight)
    first, second = server.sample(40), server.sample(24)
    both = [*first.columns["entry[0]"][:, 0], *second.columns["entry[0]"][:, 0]]
    assert both == sent.columns["entry[0]"][:, 0].tolist()
    with pytest.raises(NotReady, match="0 entries can be drawn"):
        server.sample(1, timeout_s=0)
    server.put_cache(0, sent, client.total_weight)
    server.reuse_cache = True
    assert len(server.sample(200).keys) == 200


def test_a_cache_of_another_kind_is_refused_by_name():
    server, client = caching(1, rollout_len=2), memory_of(8, 1)
    push(client, range(4), is_term=True)
    with pytest.raises(ValueError, match=r"'reward' is float32 \[1\], and must be float32 \[2\]"):
        server.put_cache(0, client.sample(2), 1.0)


@pytest.mark.parametrize("total", [0.0, -1.0, np.inf, np.nan])
def test_a_cache_without_a_weight_is_refused(total):
    server, client = caching(1), memory_of(8, 1)
    push(client, range(4), is_term=True)
    with pytest.raises(ValueError, match="2 items of a total weight of"):
        server.put_cache(0, client.sample(2), total)


def test_a_client_keeps_its_entries_and_sends_what_is_drawn():
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    with (
        closing(ReplayMemoryServer(ENTRY, 64, 2)) as server,
        closing(ReplayMemoryClient(req_endpoint=endpoint)) as client,
    ):
        server.rem.cache_size, server.rem.rollout_len = 16, 2
        server.rem.discount_factor = [0.5]
        server.bind(endpoint)
        client.get_info()
        with pytest.raises(NotReady):
            client.push_cache()
        for number in range(40):
            client.add_entry(entry(number), is_term=number == 39)
        client.push_cache()
        fields, _ = server.get_data(16, timeout_s=30)
        assert [field.shape for field in fields] == [(16, 2)] * 5
        assert (fields[0][:, 1] - fields[0][:, 0] == 1).all()
        assert fields[-1].max() <= 2
        assert len(server.rem) == 0
        client.push_cache()
        assert client.get_data(1, timeout_s=30)[1].tolist() == [1]
