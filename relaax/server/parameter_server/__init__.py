"""The parameter-server process: holds an algorithm's parameter server and keeps it going."""
