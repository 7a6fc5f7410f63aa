"""Each environment of a training has a place that no other one has."""

from clock import Clock

from relaax.parameters.callers import LEASE_S, Places

ONE, OTHER = 11, 12


def test_environments_of_several_servers_get_different_places():
    places = Places()
    assert places.of(ONE, [0, 1, 2, 3]) == [0, 1, 2, 3]
    assert places.of(OTHER, [0, 1, 2, 3]) == [4, 5, 6, 7]
    assert places.of(ONE, [0, 1, 2, 3]) == [0, 1, 2, 3]


def test_the_next_environment_gets_the_place_of_a_departed_one():
    places = Places()
    places.of(ONE, [0, 1, 2])
    places.of(OTHER, [0])
    places.of(ONE, [0, 2])
    assert places.of(OTHER, [0, 5]) == [3, 1]
    assert places.of(ONE, [0, 2, 3]) == [0, 2, 4]


def test_the_places_of_a_server_that_does_not_ask_any_more_are_free():
    clock = Clock()
    places = Places(clock)
    places.of(ONE, [0, 1])
    clock.now += LEASE_S / 2
    assert places.of(OTHER, [0]) == [2]
    clock.now += LEASE_S
    assert places.of(OTHER, [0, 1]) == [2, 0]
