"""streaming: a training loop that runs on the device as one `while`, fed with mini-batches through the infeed.

The program (`program.py`) never returns to Python between steps: each round of its loop takes a batch from the infeed,
updates the parameters, which stay on the device, and puts the loss of the batch into the outfeed. Meanwhile Python
shuffles the next batches in one thread and draws a progress bar from the losses in another (`feeding.py`).

    python -m examples.streaming
"""
