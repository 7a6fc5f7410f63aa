from relaax.server.rlx_server.worker.environments import SlotPool


def test_the_smallest_free_numbers_are_handed_out():
    pool = SlotPool()
    assert pool.take(3).tolist() == [0, 1, 2]
    assert pool.take(2).tolist() == [3, 4]
    pool.give_back(pool.take(1))
    assert pool.take(1).tolist() == [5]


def test_returned_slots_are_handed_out_again():
    pool = SlotPool()
    first = pool.take(2)
    pool.take(2)
    pool.give_back(first)
    assert pool.take(3).tolist() == [0, 1, 4]
