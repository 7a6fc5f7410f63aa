"""PyTorch stays out of a process that does not need it."""

import importlib
import sys
from types import ModuleType

import pytest

from relaax.telemetry.training.event_file import without_torch


@pytest.fixture(autouse=True)
def _not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_imports_inside_find_no_torch():
    with without_torch(), pytest.raises(ImportError):
        importlib.import_module("torch")


def test_later_imports_can_find_it_again_also_after_an_error():
    with pytest.raises(KeyError), without_torch():
        raise KeyError
    assert "torch" not in sys.modules


def test_a_loaded_torch_stays_loaded(monkeypatch):
    loaded = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", loaded)
    with without_torch():
        assert importlib.import_module("torch") is loaded
    assert sys.modules["torch"] is loaded
