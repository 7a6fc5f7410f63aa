"""What tests of all algorithms share."""

from interpreted import interpreted  # noqa: F401
