"""A flood of lines becomes a few."""

import io
import logging
import threading

import pytest
from clock import Clock

from relaax.telemetry.throttled_log import EVERY_S, RateLimit, of_kind


class Log:
    """A logger with two handlers, as a server has with a log file, which share a limit."""

    def __init__(self):
        self.clock = Clock(0.0)
        self._streams = [io.StringIO(), io.StringIO()]
        self.logger = logging.Logger("a test")
        limit = RateLimit(self.clock)
        for stream in self._streams:
            handler = logging.StreamHandler(stream)
            handler.addFilter(limit)
            self.logger.addHandler(handler)

    def said(self):
        lines, others = (stream.getvalue().splitlines() for stream in self._streams)
        assert lines == others
        return lines


@pytest.fixture(name="log")
def _log():
    return Log()


def test_a_few_lines_come_at_once_and_then_one_now_and_then(log):
    for number in range(5):
        log.logger.warning("closed %s", number, extra=of_kind("a", at_once=3))
    assert log.said() == ["closed 0", "closed 1", "closed 2"]
    log.clock.now += EVERY_S
    for number in (5, 6):
        log.logger.warning("closed %s", number, extra=of_kind("a", at_once=3))
    assert log.said()[3:] == ["closed 5 (2 more since the last such message)"]


def test_lines_of_other_kinds_and_without_a_kind_are_not_kept_back(log):
    for _ in range(30):
        log.logger.info("lost", extra=of_kind("a", at_once=1))
    log.logger.warning("closed", extra=of_kind("b", at_once=1))
    for _ in range(30):
        log.logger.error("an error")
    assert log.said() == ["lost", "closed", *["an error"] * 30]


def test_a_long_flood_is_as_many_lines_as_there_are_intervals(log):
    seconds = 3600
    for _ in range(seconds):
        log.clock.now += 1.0
        for _ in range(20):
            log.logger.warning("closed", extra=of_kind("a", at_once=20))
    assert len(log.said()) <= seconds / EVERY_S + 20


def test_threads_that_write_at_once_lose_no_line(log):
    def flood():
        for _ in range(200):
            log.logger.info("lost", extra=of_kind("a", at_once=1))

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    log.clock.now += EVERY_S
    log.logger.info("lost", extra=of_kind("a", at_once=1))
    assert log.said() == ["lost", "lost (799 more since the last such message)"]
