"""A schedule belongs to the training: a restart with other keys makes nothing jump up unsaid."""

from math import inf

import pytest

from relaax.errors import ConfigurationError
from relaax.parameters.schedule import (
    Linear,
    Remembered,
    Schedule,
    exploration_slots,
    require_no_more_exploration,
)


def rate(until, initial=8.0, begin=0.0):
    """A learning rate as actor-critics have it."""
    part = Schedule("learning rate", 1.0, 0.0, until, "max_global_step", begin, "anneal_from")
    return Remembered(part, lambda: initial)


def resumed(before, after, step):
    """What goes on at ``step`` with other keys from what ``before`` had saved."""
    after.restore(before.slots(), step)
    return after


@pytest.mark.parametrize(
    ("global_t", "expected"), [(0, 8.0), (25, 6.0), (50, 4.0), (100, 0.0), (150, 0.0)]
)
def test_the_learning_rate_falls_linearly_to_zero(global_t, expected):
    assert rate(100)(global_t) == expected


def test_without_a_change_it_goes_on_without_a_word(caplog):
    again = resumed(rate(100), rate(100), 50)
    assert [again(step) for step in (50, 75, 100)] == [4.0, 2.0, 0.0]
    assert not caplog.records


@pytest.mark.parametrize("until", [80, 200, 10_000])
def test_another_end_continues_from_the_rate_that_is_reached(until, caplog):
    again = resumed(rate(100), rate(until), 50)
    middle = (50 + until) / 2
    assert [again(step) for step in (50, middle, until)] == pytest.approx([4.0, 2.0, 0.0])
    (message,) = caplog.messages
    assert message.startswith("the learning rate at step 50 goes on with 4 and goes to 0 at step")
    assert f"(max_global_step: {until:,}, and before 100)" in message


def test_what_was_continued_is_continued_by_the_next_start(caplog):
    once = resumed(rate(100), rate(200), 50)
    caplog.clear()
    twice = resumed(once, rate(200), 125)
    assert [twice(step) for step in (125, 200)] == [2.0, 0.0]
    assert not caplog.records
    assert resumed(twice, rate(225), 125)(175) == 1.0


@pytest.mark.parametrize("step", [100, 120, 99.5])
def test_a_rate_that_has_ended_asks_for_a_new_schedule(step):
    with pytest.raises(ConfigurationError, match=f"max_global_step is 200 and was 100.*{step}"):
        resumed(rate(100), rate(200), step)


def test_the_new_schedule_begins_where_it_is_said_to_and_stays(caplog):
    again = resumed(rate(100), rate(200, begin=100), 100)
    assert [again(step) for step in (100, 150, 200)] == [8.0, 4.0, 0.0]
    assert "the learning rate at step 100 is 8, and was 0," in caplog.text
    caplog.clear()
    assert resumed(again, rate(200, begin=100), 150)(150) == 4.0
    assert not caplog.records


def test_an_end_that_has_passed_changes_nothing():
    again = resumed(rate(100), rate(40), 50)
    assert again(50) == 4.0
    assert resumed(again, rate(100), 50)(75) == 2.0


def test_another_first_rate_counts_and_is_said(caplog):
    assert resumed(rate(100), rate(100, initial=2.0), 50)(50) == 1.0
    assert "the learning rate at step 50 is 1, and was 4," in caplog.text


def test_a_rate_that_shall_fall_no_more_stays_where_it_is(caplog):
    constant = resumed(rate(100), rate(inf), 50)
    assert [constant(step) for step in (50, 1e9)] == [4.0, 4.0]
    assert "goes on with 4 and stays (max_global_step: no end, and before 100)" in caplog.text
    assert resumed(constant, rate(150), 50)(100) == 2.0


def test_what_rises_to_its_end_does_not_fall_back(caplog):
    def beta(until):
        return Remembered(Schedule("beta", 0.4, 1.0, until, "beta_updates"))

    assert resumed(beta(100), beta(1000), 50)(50) == pytest.approx(0.7)
    assert resumed(beta(100), beta(1000), 200)(200) == 1.0
    assert "goes on with 0.7 and goes to 1 at step 1,000" in caplog.text


def beta_from(start, until=100.0):
    return Remembered(Schedule("beta", start, 1.0, until, "beta_updates"))


def test_another_start_of_a_schedule_counts_and_is_said(caplog):
    again = resumed(beta_from(0.4), beta_from(0.8), 50)
    assert [again(step) for step in (50, 75, 100)] == pytest.approx([0.9, 0.95, 1.0])
    assert "the beta at step 50 is 0.9, and was 0.7," in caplog.text
    assert (
        "goes from 0.8 to 1 now, as the configuration says, and went from 0.4 to 1" in caplog.text
    )
    caplog.clear()
    assert resumed(again, beta_from(0.8), 75)(75) == pytest.approx(0.95)
    assert not caplog.records


def test_what_was_continued_has_the_start_of_its_schedule():
    continued = resumed(beta_from(0.4), beta_from(0.4, 200.0), 50)
    assert resumed(continued, beta_from(0.4, 200.0), 125)(125) == pytest.approx(0.85)
    assert resumed(continued, beta_from(0.6, 200.0), 100)(100) == pytest.approx(0.8)


def test_a_checkpoint_of_before_starts_were_kept_has_that_of_its_line(caplog):
    old = {name: each for name, each in beta_from(0.4).slots().items() if "ends" not in name}
    same, other = beta_from(0.4), beta_from(0.8)
    same.restore(old, 50)
    assert same(50) == pytest.approx(0.7)
    assert not caplog.records
    other.restore({**other.slots(), **old}, 50)  # completed
    assert other(50) == pytest.approx(0.9)


class TestExploration:
    """Actors have no checkpoints: they explore as configured, and never more than before."""

    @staticmethod
    def resume(before, after, step):
        require_no_more_exploration(
            {"epsilon": after}, exploration_slots({"epsilon": before}), step
        )

    @pytest.mark.parametrize(
        "after", [Linear(1.0, 0.05, 1e5), Linear(1.0, 0.2, 1e4), Linear(1, 0, 0, 60_000)]
    )
    def test_more_of_it_is_refused(self, after):
        with pytest.raises(ConfigurationError, match=r"epsilon would go up from 0.05 to .*50,000"):
            self.resume(Linear(1.0, 0.05, 1e4), after, 50_000)

    def test_a_new_schedule_has_a_beginning_of_its_own(self, caplog):
        self.resume(Linear(1.0, 0.05, 1e4), Linear(0.5, 0.05, 1e4, 50_000), 50_000)
        assert "epsilon was 0.05 and is 0.5 now, at step 50000" in caplog.text

    def test_less_of_it_is_said(self, caplog):
        self.resume(Linear(1.0, 0.05, 1e4), Linear(1.0, 0.01, 1e4), 50_000)
        assert "epsilon was 0.05 and is 0.01 now" in caplog.text

    def test_what_is_still_the_same_may_differ_later(self, caplog):
        self.resume(Linear(1, 0, 0, 100), Linear(1, 0, 0, 1000), 50)
        assert not caplog.records
