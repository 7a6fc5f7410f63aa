"""Counts of an RLX server and its workers, in memory that they share.

``table``   the memory: a row for the server, and one for each worker
``places``  the place of each environment among all
``row``     the counts that a worker writes of itself, and an RLX server of all

Each cell has one writer and is written at once, without locks. Workers count on every turn; the
counts are added up when somebody asks.
"""

from relaax.server.rlx_server.tally.row import ServerState, WorkerRow, private_row
from relaax.server.rlx_server.tally.table import Tally

__all__ = ["ServerState", "Tally", "WorkerRow", "private_row"]
