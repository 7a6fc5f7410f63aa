"""How servers log."""

import logging


def start_logging(level: str) -> None:
    """Log to standard error from ``level`` on, each line with its process."""
    logging.basicConfig(
        level=level, format="%(asctime)s:%(process)d:%(levelname)s:%(message)s", force=True
    )
