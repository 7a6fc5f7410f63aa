"""Typed keys of a YAML section, as an algorithm's configuration declares them."""

import pytest
from pydantic import Field, PositiveInt, ValidationError

from relaax.algorithm_base import Section
from relaax.configuration.mistakes import explain


class Inner(Section):
    decay: float = 0.9


class Outer(Section):
    state_size: PositiveInt
    inner: Inner = Inner()
    written: int = Field(0, alias="as-written")


@pytest.mark.parametrize(
    ("section", "reasons"),
    [
        ({"state_sise": 4}, ["state_sise: no such key; did you mean state_size?"]),
        (
            {"state_size": 4, "qqq": 1},
            ["qqq: no such key; known keys are state_size, inner, as-written"],
        ),
        (
            {"qqq": 4, "state_sise": 4, "rrr": 1},
            [
                "state_sise: no such key; did you mean state_size?; "
                "qqq, rrr: no such key; known keys are state_size, inner, as-written"
            ],
        ),
        (
            {"state_size": 4, "inner": {"decai": 1}},
            ["inner: decai: no such key; did you mean decay?"],
        ),
        ({"state_size": "4"}, ["state_size: must be an integer, is '4'"]),
        ({}, ["state_size: is missing"]),
        ({"state_size": 4, "written": 1}, ["written: no such key; did you mean as-written?"]),
    ],
)
def test_a_mistake_is_a_line_that_names_the_key(section, reasons):
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(section)
    assert explain(error.value) == reasons


def test_what_is_right_is_read():
    read = Outer.model_validate({"state_size": 4, "inner": {"decay": 1}, "as-written": 2})
    assert (read.state_size, read.inner.decay, read.written) == (4, 1, 2)
