"""Which optimiser a YAML file asks for."""

import pytest
from pydantic import ConfigDict, ValidationError

from relaax.parameters.optimizers import SGD, Adam, OptimizerSections, RMSProp


class Settings(OptimizerSections):
    """The settings of some algorithm."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rate: float = 1.0


def test_it_is_rmsprop_with_the_numbers_of_the_seed_if_none_is_named():
    settings = Settings()
    optimizer = settings.optimizer.make(3)
    assert isinstance(optimizer, RMSProp)
    assert (optimizer.settings.decay, optimizer.settings.epsilon) == (0.99, 0.1)
    assert settings.optimizer.gradient_norm_clipping == 40


@pytest.mark.parametrize(("name", "kind"), [("RMSProp", RMSProp), ("Adam", Adam), ("SGD", SGD)])
@pytest.mark.parametrize("section", [{}, None, {"gradient_norm_clipping": None}])
def test_a_section_chooses_its_optimiser(name, kind, section):
    """``Adam:`` with nothing behind it is None to a YAML reader."""
    settings = Settings.model_validate({"rate": 2.0, name: section})
    optimizer = settings.optimizer.make(3)
    assert isinstance(optimizer, kind)
    assert all(len(slot) in (1, 3) for slot in optimizer.slots().values())
    limit = settings.optimizer.gradient_norm_clipping
    assert limit is None if section else limit == 40


def test_the_numbers_of_a_section_reach_the_optimiser():
    section = {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-5, "weight_decay": 0.01}
    adam = Settings.model_validate({"Adam": section}).optimizer.make(2).settings
    assert (adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay) == (0.8, 0.99, 1e-5, 0.01)
    rmsprop = Settings.model_validate({"RMSProp": {"decay": 0.9, "epsilon": 1e-3}})
    settings = rmsprop.optimizer.make(2).settings
    assert (settings.decay, settings.epsilon) == (0.9, 1e-3)
    assert Settings.model_validate({"SGD": {"momentum": 0.5}}).optimizer.make(2).momentum == 0.5


@pytest.mark.parametrize(
    ("first", "second"), [("RMSProp", "Adam"), ("Adam", "SGD"), ("RMSProp", "SGD")]
)
def test_two_sections_are_refused_by_their_names(first, second):
    with pytest.raises(ValidationError, match=f"{first} and {second} exclude each other"):
        Settings.model_validate({second: {}, first: {}})


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"Adam": {"beta1": 1.0}}, "Adam.beta1"),
        ({"Adam": {"beta2": -0.1}}, "Adam.beta2"),
        ({"Adam": {"epsilon": 0.0}}, "Adam.epsilon"),
        ({"Adam": {"weight_decay": -1.0}}, "Adam.weight_decay"),
        ({"SGD": {"momentum": 1.0}}, "SGD.momentum"),
        ({"SGD": {"gradient_norm_clipping": 0.0}}, "SGD.gradient_norm_clipping"),
        ({"SGD": 0.9}, "SGD"),
    ],
)
def test_what_cannot_be_used_is_named(section, key):
    with pytest.raises(ValidationError) as error:
        Settings.model_validate(section)
    assert [".".join(found["loc"]) for found in error.value.errors()] == [key]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"Adam": {"momentum": 0.9}}, "momentum: no such key"),
        ({"adam": {}}, "adam: no such key; did you mean Adam"),
    ],
)
def test_a_key_that_there_is_not_is_refused(section, said):
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate(section)
