"""Workers that serve the tests of one module; not one is left when a test ends."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served_worker import Oracle, ServedWorker, serve_agents, serve_batches


@pytest.fixture(name="oracle")
def _oracle() -> Oracle:
    """The batch agent of the workers that ``serve`` makes."""
    return Oracle()


@pytest.fixture(name="serve")
def _serve(oracle: Oracle) -> Iterator[Callable[..., ServedWorker]]:
    """Makes a worker, which asks ``oracle``: turn by turn, or on a thread with ``runs``."""
    with contextlib.ExitStack() as stack:

        def serve(agent: Oracle = oracle, **options: Any) -> ServedWorker:
            return stack.enter_context(contextlib.closing(serve_batches(agent, **options)))

        yield serve


@pytest.fixture(name="serve_separately")
def _serve_separately() -> Iterator[Callable[..., ServedWorker]]:
    """Makes a worker with an agent for each environment, from a function of their numbers."""
    with contextlib.ExitStack() as stack:

        def serve(make_agent: Callable[[int], Any], **options: Any) -> ServedWorker:
            return stack.enter_context(contextlib.closing(serve_agents(make_agent, **options)))

        yield serve
