"""tinyframe: a small neural network framework whose only backend is xlapy.

Tensors record what is computed from them; `gradient` walks the record backwards; `compiled` turns a function of tensors
into one native program per signature of its arguments. A training step (forward, backward, update of the parameters) is
one such program:

    model = Sequential(Linear(64, 128), Relu(), Linear(128, 10))
    optimizer = Adam(learning_rate=1e-3)
    step = compiled_step(lambda parameters, x, y: softmax_cross_entropy(model(parameters, x), y), optimizer)

    parameters = model.initialize(np.random.default_rng(0))
    state = optimizer.initialize(parameters)
    parameters, state, loss = step(parameters, state, np.float32(1), images, labels)

The file to read first is `tensor.py`; `backend.py` is all that knows xlapy.
"""

from examples.tinyframe.autodiff import gradient
from examples.tinyframe.layers import Linear, Relu, Sequential, Tanh
from examples.tinyframe.losses import log_softmax, softmax_cross_entropy
from examples.tinyframe.optimizers import SGD, Adam, Optimizer
from examples.tinyframe.step import Compiled, compiled, compiled_step
from examples.tinyframe.tensor import Tensor, exp, log, maximum, select, sqrt, tanh

__all__ = [
    "SGD",
    "Adam",
    "Compiled",
    "Linear",
    "Optimizer",
    "Relu",
    "Sequential",
    "Tanh",
    "Tensor",
    "compiled",
    "compiled_step",
    "exp",
    "gradient",
    "log",
    "log_softmax",
    "maximum",
    "select",
    "softmax_cross_entropy",
    "sqrt",
    "tanh",
]
