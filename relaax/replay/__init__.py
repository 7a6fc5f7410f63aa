"""Experience that learners draw from: steps, each stored once, and tables of items over them.

``specs``          what an algorithm stores and draws, as it is configured
``replay``         a storage, its tables and its writers, for many threads
``storage``        steps as columns, in the order in which every environment made them
``schema``         what the columns are
``step_batch``     steps on their way to a storage
``writers``        who writes into which slot, and which step of it comes next
``places``         which environments have room among the steps that are stored
``table``          which items there are, which are drawn, and what is read of them
``mixed``          batches that are made of parts of several tables
``views``          what is read of the steps around an item: transitions, windows, stacks of frames
``gather``         rows of columns, read into memory that is given
``rollouts``       the same, for sequences that go on across the ends of episodes
``selectors``      which items are drawn
``priority_tree``  draws in proportion to priorities
``times``          how long it takes to do what
``limiter``        when items may be added, and when they may be drawn
``learnt``         which part of each environment's steps is learnt from
``removers``       which items leave a table that has too many
``saved``          checks what was saved before a replay goes on from it
``snapshot``       copies what is stored while more is stored
``service``        the gRPC service of a replay server
``wire``           what its messages mean
``segments``       samples through memory that both ends share
``array_bytes``    arrays one after another in bytes
``client``         writes to replay servers, and draws from them
``process``        the command ``relaax-replay-server``
"""

import relaax.net.grpc_log  # noqa: F401  (before gRPC is imported)
