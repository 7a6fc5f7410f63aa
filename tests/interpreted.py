"""Graphs without XLA: compiling one takes longer than all that a test computes with it."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TensorFlow interpret all networks and gradients, but in tests that are marked ``xla``."""
    if request.node.get_closest_marker("xla") is not None:
        return
    from relaax.learning.networks.compiled_tf import CompiledFunction

    make: Callable[..., Any] = CompiledFunction.__init__

    def interpret(self: CompiledFunction, function: Callable[..., Any], jit_compile: bool) -> None:
        make(self, function, jit_compile=False)

    monkeypatch.setattr(CompiledFunction, "__init__", interpret)
