"""Experience that learners draw from: steps, each stored once, and tables of items over them.

``specs``          the configuration of storage and tables
``replay``         a storage, its tables and its writers, for many threads
``intake``         puts steps into the storage and its tables, with the ends of episodes
``storage``        steps as columns, in the order in which every environment made them
``schema``         names, types and shapes of the columns
``step_batch``     steps on their way to a storage
``writers``        writers, their slots, and the number of each slot's next step
``table``          items over stored steps: adds, draws, reads and removes them
``mixed``          batches with parts of several tables
``views``          the rows of an item: transitions, windows, stacks of frames, rollouts
``selectors``      the choice of drawn items
``limiter``        when items may be added, and when they may be drawn
``pacing``         when rollouts may be begun, so that none is too old when it is learnt from
``counts``         the share of each environment's steps that is learnt from, and times
``removers``       the choice of items that leave a full table
``saved``          checks saved contents before a replay goes on from them
``service``        the gRPC service of a replay server, and its port
``wire``           encodes and decodes its messages
``segments``       samples through memory that both ends share
``array_bytes``    arrays one after another in bytes
``client``         writes to replay servers, and draws from them
``process``        the command ``relaax-replay-server``
"""

import relaax.net  # noqa: F401  (before gRPC is imported)
