"""The RLX server: listens, admits, forks a worker for each client; never runs a network itself."""
