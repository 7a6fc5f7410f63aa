"""What becomes of the steps of environments that learn: names of ``KeptCounts``."""

#: Steps whose reward has come, and what became of them: a learner or a replay server has
#: acknowledged them, or no such server took them in time.
TAKEN, DELIVERED, DROPPED = "taken", "delivered", "dropped"
