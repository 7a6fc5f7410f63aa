"""Starts the processes of a Procfile with honcho and shows the training's progress."""
