"""The process that learns from experience, and publishes what it has learnt.

``main``           the command
``loop``           samples, learns, publishes and saves, until the training is over
``prefetcher``     batches that are ready before they are asked for
``on_demand``      batches that are drawn when they are asked for
``publishing``     when to publish
``training_watch`` counts steps, and asks whether the training is over
``replay_port``    the gRPC port of a replay
"""
