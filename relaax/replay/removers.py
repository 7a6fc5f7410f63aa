"""Which items leave a table that has too many."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.selectors.prioritized import Prioritized
from relaax.replay.selectors.selector import Selector
from relaax.replay.storage import Storage

RemoverName: TypeAlias = Literal["fifo", "lowest_priority"]

#: Of a table's items, a part of one in so many leaves at once: who leaves is found by looking at
#: all of them.
PARTS = 64


class Remover:
    """Lets items leave a table, so that it never has more than the limiter's ``max_items``.

    ``fifo`` are those whose steps were stored first, ``lowest_priority`` those of the lowest
    priorities. ConfigurationError where there are no priorities, or no ``max_items``.
    """

    def __init__(
        self, name: RemoverName, limiter: Limiter, selector: Selector, storage: Storage
    ) -> None:
        if limiter.max_items is None:
            raise ConfigurationError(f"the remover {name} needs max_items")
        if name == "lowest_priority" and not isinstance(selector, Prioritized):
            raise ConfigurationError(f"the remover {name} needs the selector prioritized")
        self._name = name
        self._most = limiter.max_items
        self._left_over = max(limiter.min_items, self._most - self._most // PARTS)
        self._selector = selector
        self._storage = storage

    def make_room(self) -> int:
        """Let items leave if there are too many; return how many left."""
        if len(self._selector) <= self._most:
            return 0
        items = self._selector.contents()
        count = len(items["rows"]) - self._left_over
        first = np.argpartition(self._order(items), count - 1)[:count]
        self._selector.remove(items["rows"][first])
        return count

    def _order(self, items: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return numbers [N], of which those that leave have the lowest."""
        if self._name == "lowest_priority":
            return items["priorities"]
        serials: npt.NDArray[np.int64] = self._storage.serials[items["rows"]]
        return serials
