"""Whole numbers on a command line."""

import argparse


def natural(text: str) -> int:
    """Return a whole number of at least 0; for ``argparse``."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number of at least 0 is needed, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    """Return a whole number of at least 1; for ``argparse``."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {text!r}")
    return int(text)
