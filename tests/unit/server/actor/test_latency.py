"""Means of the parts of an actor's steps are stored every two seconds."""

import pytest
from clock import Clock
from stored_metrics import StoredMetrics

from relaax.algorithm_base.inference import ChoiceTimes
from relaax.server.actor.latency import INTERVAL_S, Latency, latency_figures

#: Seconds of a choice at a server, and of the environments' step before it.
CHOICES = [
    (ChoiceTimes(inference=0.05, queue=0.0, network=0.0), 0.0),  # the first one compiles
    (ChoiceTimes(inference=0.2, queue=0.1, network=0.05), 0.4),
    (ChoiceTimes(inference=0.4, queue=0.0, network=0.15), 0.6),
]


class Actor:
    """Plays choices at a clock that goes on by all that they take."""

    def __init__(self):
        self.stored, self.clock, self.busy_s = StoredMetrics(), Clock(), 0.0
        self.latency = Latency(self.stored, lambda: self.busy_s, self.clock)

    def play(self, times, environment_s):
        self.busy_s += environment_s
        self.clock.now += environment_s + sum(part for part in times if part is not None)
        self.latency.chose(times)


@pytest.fixture(name="actor")
def _actor():
    return Actor()


def test_means_are_of_the_parts_of_a_step_and_add_up_to_its_time(actor):
    actor.play(*CHOICES[0])
    began_at = actor.clock.now
    for each in CHOICES[1:]:
        actor.play(*each)
    actor.latency.close()
    found = actor.stored.newest()
    assert found == pytest.approx(
        {
            "latency/queue": 0.05,
            "latency/inference": 0.3,
            "latency/network": 0.1,
            "latency/environment": 0.5,
        }
    )
    assert sum(found.values()) == pytest.approx((actor.clock.now - began_at) / 2)


def test_operators_see_the_parts_by_policy_and_groups_of_one_policy_together():
    together, alone = [Actor(), Actor()], Actor()
    for actor in together:
        for each in CHOICES:
            actor.play(*each)
    for _ in range(2):
        alone.play(ChoiceTimes(inference=0.25), 0.5)
    by_policy = {"two": [each.latency for each in together], "inline": [alone.latency]}
    samples = [sample for metric in latency_figures(by_policy) for sample in metric.samples]
    sums = {
        (sample.name, sample.labels["policy"]): sample.value
        for sample in samples
        if sample.name.endswith(("_sum", "_count"))
    }
    expected = {"queue_wait": 0.2, "inference": 1.2, "network": 0.4, "environment": 2.0}
    assert sums == pytest.approx(
        {
            **{(f"relaax_{name}_seconds_sum", "two"): value for name, value in expected.items()},
            **{(f"relaax_{name}_seconds_count", "two"): 4 for name in expected},
            ("relaax_inference_seconds_sum", "inline"): 0.25,
            ("relaax_inference_seconds_count", "inline"): 1,
            ("relaax_environment_seconds_sum", "inline"): 0.5,
            ("relaax_environment_seconds_count", "inline"): 1,
        }
    )


def test_with_a_policy_of_its_own_there_is_neither_queue_nor_network(actor):
    for _ in range(2):
        actor.play(ChoiceTimes(inference=0.25), 0.5)
    actor.latency.close()
    assert actor.stored.newest() == {"latency/inference": 0.25, "latency/environment": 0.5}


def test_they_are_stored_once_an_interval_however_many_choices_there_are(actor):
    actor.play(*CHOICES[0])
    for _ in range(80):
        actor.play(ChoiceTimes(inference=INTERVAL_S / 32), INTERVAL_S / 32)
    assert [len(values) for values in actor.stored.values.values()] == [5, 5]
