"""How the servers' YAML reader reads values and refuses files."""

import datetime

import pytest
import yaml as pyyaml

from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError


@pytest.fixture
def read(tmp_path):
    """A function that reads a text as a file."""

    def read_text(text):
        path = tmp_path / "x.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_yaml(path)

    return read_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e8", 1e8),
        ("7e-4", 7e-4),
        ("1E-2", 0.01),
        ("+1e3", 1000.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1.0e+3", 1000.0),
        (".inf", float("inf")),
    ],
)
def test_a_number_with_an_exponent_or_a_point_is_a_float(read, text, value):
    (found,) = read(f"x: {text}").values()
    assert (found, type(found)) == (value, float)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("5", 5), ("0x1F", 31), ("true", True), ("010", 8), ("08", "08"), ("1.2.3", "1.2.3")),
        *(("'1e8'", "1e8"), ("e8", "e8"), ("1e", "1e"), ("1e5x", "1e5x"), ("1-2", "1-2")),
        *(("2024-01-31", datetime.date(2024, 1, 31)), ("127.0.0.1", "127.0.0.1"), ("~", None)),
    ],
)
def test_other_values_keep_their_type(read, text, value):
    (found,) = read(f"x: {text}").values()
    assert (found, type(found)) == (value, type(value))


def test_pyyaml_itself_is_not_changed():
    assert pyyaml.safe_load("1e8") == "1e8"


def test_a_merged_mapping_may_be_overridden(read):
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b, y: 4}\n"
    assert read(text)["c"] == {"x": 1, "y": 4}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: {c: 1, c: 2}", ", line 2: the key c is written twice"),
        ("a: 1\nb: [c", ", line 2: expected ',' or ']', but got '<stream end>'"),
        ("a: {<<: 5}", ", line 1: expected a mapping or list of mappings for merging"),
        ("a: b: c", ", line 1: mapping values are not allowed here"),
        ("a: !!python/name:os.system x", ", line 1: could not determine a constructor"),
        ("[a]: b", ", line 1: found unhashable key"),
        ("a: *b", ", line 1: found undefined alias"),
        ("a: 1\n---\nb: 2", ", line 2: a second document begins here, with '---', and a file has"),
        ("a: &a 1\nb: &a 2", ", line 2: an anchor (&name) of this name stands above already"),
        ("a: 2024-13-45", ": month must be in 1..12"),
        ("a: \x01", ": unacceptable character"),
        (b"a: \xff", " is not UTF-8 text: invalid start byte"),
        ("", " holds no sections"),
        ("just text", " holds no sections"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(read, tmp_path, text, reason):
    with pytest.raises(ConfigurationError) as error:
        read(text)
    assert f"{tmp_path / 'x.yaml'}{reason}" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError) as error:
        read_yaml(tmp_path / "absent.yaml")
    assert str(error.value) == f"cannot read {tmp_path / 'absent.yaml'}: No such file or directory"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="Is a directory"):
        read_yaml(tmp_path)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, "line 5: the file stands for more than 10000 values"),
        ("a: " + "[" * 5000, "line 1: values lie in each other on more than 64 levels"),
        ("a: " + "{b: " * 5000, "line 1: values lie in each other on more than 64 levels"),
        ("a: &a [*a]", "line 1: an alias stands for what it is a part of"),
        ("a: &a {<<: *a}", "line 1: an alias stands for what it is a part of"),
        ("a:\n" + "  - 1\n" * 10_001, "stands for more than 10000 values"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
    ],
)
def test_a_file_that_grows_when_it_is_read_is_refused(read, text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        read(text)


def test_a_value_may_be_used_again_where_that_makes_few(read):
    assert read("a: &a [1, 2]\nb: [*a, *a]\n")["b"] == [[1, 2], [1, 2]]
