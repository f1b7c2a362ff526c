"""Layers: values without state. `initialize` makes a layer's parameters, and a call takes them with the input."""

from examples.tinyframe.layers.attention import MultiHeadAttention
from examples.tinyframe.layers.base import Flatten, Layer, Residual, Sequential, Training
from examples.tinyframe.layers.dense import Embedding, Linear, Relu, Tanh
from examples.tinyframe.layers.normalization import BatchNorm, Dropout, LayerNorm
from examples.tinyframe.layers.recurrent import Lstm
from examples.tinyframe.layers.windows import AveragePool, Convolution, MaxPool

__all__ = [
    "AveragePool",
    "BatchNorm",
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
    "Relu",
    "Residual",
    "Sequential",
    "Tanh",
    "Training",
]
