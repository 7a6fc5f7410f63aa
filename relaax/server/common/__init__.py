"""What both servers need: configuration, loading of algorithms, checkpoints, AWS."""
