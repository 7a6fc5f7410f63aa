"""The tree of errors that ``relaax.errors`` draws is the tree of its classes."""

import inspect
import re

from relaax import errors


def bases_in_the_drawing():
    """Return every drawn name with the name that it hangs on."""
    assert errors.__doc__ is not None
    rows = re.findall(r"^([│├└─ ]*)([A-Z]\w+)(?:  .*)?$", errors.__doc__, re.MULTILINE)
    path, bases = ["Exception"], {}
    for indent, name in rows:
        del path[1 + len(indent) // 4 :]
        bases[name] = path[-1]
        path.append(name)
    return bases


def test_the_drawing_shows_every_class_below_its_base():
    found = dict(inspect.getmembers(errors, inspect.isclass))
    assert bases_in_the_drawing() == {n: cls.__base__.__name__ for n, cls in found.items()}


def test_every_error_has_one_root():
    for _, cls in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(cls, errors.RelaaxError)
