"""tinyframe: a small neural network framework whose only backend is xlapy.

Tensors record what is computed from them; `gradient` walks the record backwards; `compiled` turns a function of tensors
into one native program per signature of its arguments. A training step (forward, backward, update of the parameters) is
one such program:

    model = Sequential(Linear(64, 128), Relu(), Dropout(0.1), Linear(128, 10))
    optimizer = Adam(learning_rate=1e-3)

    def loss(parameters, training, x, y):
        return softmax_cross_entropy(model(parameters, x, training), y)

    step = compiled_step(loss, optimizer)
    parameters = model.initialize(np.random.default_rng(0))
    state = optimizer.initialize(parameters)
    parameters, state, loss = step(parameters, state, np.float32(1), images, labels)

The file to read first is `tensor.py`; `backend` is all that knows xlapy. Functions of tensors, by family: `parts.py`,
`windows.py`, `normalization.py`, `loops.py`, `losses.py`. `layers` adds parameters to them. docs/embedding.md goes
through all of it with the eyes of who writes a framework.
"""

import os

from examples.tinyframe.autodiff import gradient
from examples.tinyframe.layers import (
    AveragePool,
    BatchNorm,
    Convolution,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Lstm,
    MaxPool,
    MultiHeadAttention,
    Relu,
    Residual,
    Sequential,
    Tanh,
    Training,
)
from examples.tinyframe.losses import softmax_cross_entropy
from examples.tinyframe.normalization import log_softmax, softmax
from examples.tinyframe.optimizers import SGD, Adam, Optimizer
from examples.tinyframe.step import Compiled, compiled, compiled_step
from examples.tinyframe.tensor import Tensor, exp, log, maximum, minimum, select, sigmoid, sqrt, tanh
from xlapy.builder import pass_over

pass_over(os.path.dirname(__file__))  # errors name the line of who uses the framework

__all__ = [
    "SGD",
    "Adam",
    "AveragePool",
    "BatchNorm",
    "Compiled",
    "Convolution",
    "Dropout",
    "Embedding",
    "Flatten",
    "Layer",
    "LayerNorm",
    "Linear",
    "Lstm",
    "MaxPool",
    "MultiHeadAttention",
    "Optimizer",
    "Relu",
    "Residual",
    "Sequential",
    "Tanh",
    "Tensor",
    "Training",
    "compiled",
    "compiled_step",
    "exp",
    "gradient",
    "log",
    "log_softmax",
    "maximum",
    "minimum",
    "select",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy",
    "sqrt",
    "tanh",
]
