"""The processes: RLX server, parameter server, and the launcher that starts them together."""
