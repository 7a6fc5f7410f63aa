"""Finds connections whose tokens are not allowed any more: a token is shown once, at the start."""

from collections.abc import Iterable

from relaax.access import Right, TokenFile
from relaax.server.rlx_server.worker.connection import Connection


class TokenWatch:
    """Compares what connections have shown with the file of tokens, whenever that has changed."""

    def __init__(self, tokens: TokenFile | None) -> None:
        self._tokens = tokens
        #: Of the file, when it was compared.
        self._generation = 0

    def deleted(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return those that are to be closed, each once."""
        if self._tokens is None:
            return []
        generation = self._tokens.generation()
        if generation == self._generation:
            return []
        self._generation = generation
        return [
            connection
            for connection in connections
            if connection.token_digest is not None
            and not connection.is_leaving
            and not self._tokens.allows_digest(connection.token_digest, Right.PLAY)
        ]
