"""Trains a classifier of handwritten digits with tinyframe: `python -m examples.digits`, or `... --model cnn`."""
