"""Modules by name, and the vector that they travel as."""

import numpy as np
import pytest

from relaax.compat.surreal import ModuleDict
from relaax.errors import ConfigurationError


class Model:
    """Has weights like a model of Keras."""

    def __init__(self, *weights):
        self.weights = [np.array(part, np.float32) for part in weights]

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = [np.array(part) for part in weights]


def modules(value=0.0):
    return {
        "table": np.full((2, 2), value, np.float32),
        "model": Model([value + 1], [[value + 2, value + 3]]),
    }


def test_all_parameters_are_one_vector_by_the_order_of_names():
    assert ModuleDict(modules()).vector().tolist() == [1, 2, 3, 0, 0, 0, 0]


def test_what_one_process_published_is_loaded_by_another_whose_names_have_another_order():
    theirs = modules(10.0)
    ours = dict(reversed(modules().items()))
    reader = ModuleDict(ours)
    reader.load(reader.split(ModuleDict(theirs).vector()))
    np.testing.assert_array_equal(ours["table"], theirs["table"])
    for mine, given in zip(ours["model"].weights, theirs["model"].weights, strict=True):
        np.testing.assert_array_equal(mine, given)


def test_parameters_have_names():
    parameters = ModuleDict(modules()).split(np.arange(7, dtype=np.float32))
    assert {name: part.tolist() for name, part in parameters.items()} == {
        "model/0": [0], "model/1": [[1, 2]], "table": [[3, 4], [5, 6]],
    }  # fmt: skip


def test_the_vector_is_a_copy_and_so_is_what_is_loaded():
    own = modules()
    found = ModuleDict(own)
    vector = found.vector()
    found.load(found.split(vector))
    vector[:] = 99
    assert found.vector().max() == 3


def test_other_modules_than_the_learners_are_refused_with_their_names():
    with pytest.raises(
        ConfigurationError, match=r"have 3 numbers.*model/0, model/1, table\) have 7"
    ):
        ModuleDict(modules()).split(np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (np.zeros(2), "q must be a writeable array of float32, is one of float64"),
        ([1.0], "q must be an array of float32, or have get_weights"),
    ],
)
def test_what_is_no_module_is_refused_by_its_name(module, reason):
    with pytest.raises(ConfigurationError, match=reason):
        ModuleDict({"q": module})


def test_no_module_at_all_is_refused():
    with pytest.raises(ConfigurationError, match="names no module"):
        ModuleDict({})
