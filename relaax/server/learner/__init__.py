"""The process that learns from experience, and publishes what it has learnt.

``main``           the command
``builder``        makes the learner and its loop, here and in one process with all others
``loop``           samples, learns, publishes and saves, until the training is over
``prefetcher``     batches that are ready before they are asked for
``publishing``     when to publish
``lineage``        which training is continued, as the parameter server is shown
``shown``          what operators and Weights & Biases see of it
``member``         a learner that carries out the orders of a population's manager
``kept_replay``    whether what its own replay holds is saved, and where
``experience``     where its samples come from: a replay of its own, or replay servers
"""
