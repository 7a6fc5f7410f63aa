"""The servers' log."""

import logging


def start_logging(level: str) -> None:
    """Log messages of ``level`` and above to standard error, each with its process id."""
    logging.basicConfig(
        level=level, format="%(asctime)s:%(process)d:%(levelname)s:%(message)s", force=True
    )
