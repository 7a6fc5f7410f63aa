"""How long an update of the parameter server's flat vector takes, for each optimiser.

    python benchmarks/optimizers.py
    python benchmarks/optimizers.py --sizes 681000 --calls 100

Milliseconds an update, the best of 200 rounds, in numpy on one thread. Adam has weight decay.
``check`` is what is done before an update: the gradient is
refused unless it is of the right size and finite. ``copy`` is a memory copy of the parameters.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from report import Results, add_json, parser_of
from timing import best_us

from relaax.parameters.optimizers import (
    SGD,
    Adam,
    AdamSettings,
    Optimizer,
    RMSProp,
    RMSPropSettings,
)
from relaax.parameters.parameter_store import ParameterStore

#: Many and short ones, so that some of them are not disturbed.
ROUNDS = 200


@dataclass(frozen=True)
class Row:
    """One line of the table; milliseconds an update."""

    parameters: int
    rmsprop_ms: float
    adam_ms: float
    sgd_ms: float
    check_ms: float
    copy_ms: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 681_000, 2_000_000],
                        metavar="N", help="numbers of parameters")  # fmt: skip
    parser.add_argument("--calls", type=int, default=2, help="updates in a round (default 2)")
    add_json(parser, "optimizers")
    arguments = parser.parse_args()
    results = Results(arguments.json)
    names = "".join(f"{name:>10}" for name in ("rmsprop", "adam", "sgd", "check", "copy"))
    print(f"{'parameters':>11}{names}   ms an update")
    for size in arguments.sizes:
        row = Row(size, *(best_us(call, arguments.calls, ROUNDS) / 1e3 for call in cases(size)))
        figures = list(asdict(row).values())[1:]
        print(f"{size:>11,}" + "".join(f"{figure:>10.3f}" for figure in figures), flush=True)
        results.add(row)
    results.close()


def cases(size: int) -> list[Callable[[], Any]]:
    """Return the calls to be compared: an update by each optimiser, a check, a copy."""
    optimizers: list[Optimizer] = [
        RMSProp(size, RMSPropSettings()),
        Adam(size, AdamSettings(weight_decay=0.01)),
        SGD(size, 0.9),
    ]
    random = np.random.default_rng(1)
    parameters, gradient = (random.standard_normal(size, np.float32) for _ in range(2))
    updates = [partial(one.apply, parameters, gradient, 1e-6) for one in optimizers]
    store = ParameterStore(parameters, optimizers[0], lambda _: 1e-6)
    return [*updates, partial(store.require_fitting, gradient), parameters.copy]


if __name__ == "__main__":
    main()
