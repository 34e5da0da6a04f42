"""Multi-layer perceptrons in NumPy: forward and backward passes written out.

Owns dense layers and their activations; must not know policies, losses or optimizers. On a CPU the cost of a small
network is the dispatch of its operations, which NumPy keeps several times below torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from torch import nn

FloatArray = npt.NDArray[np.float32]


class Activation(NamedTuple):
    """An elementwise function whose derivative can be had from its output alone.

    :param function: maps pre-activations [B, H] to outputs, in place where it can
    :param slope: maps outputs [B, H] to ∂output/∂pre-activation
    """

    function: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], Any]


class Layer(NamedTuple):
    """One dense layer, on views of the policy's parameters and of their gradients.

    :param weight: [out, in], as ``torch.nn.Linear`` stores it
    :param bias: [out]
    :param weight_gradient: [out, in], overwritten by ``backward``
    :param bias_gradient: [out], overwritten by ``backward``
    :param activation: None for a linear layer
    """

    weight: FloatArray
    bias: FloatArray
    weight_gradient: FloatArray
    bias_gradient: FloatArray
    activation: Activation | None


def activation_of(module: nn.Module) -> Activation | None:
    """The counterpart of a torch activation.

    :param module: an instance of a class of ``torch.nn``
    :return: None where there is no counterpart
    """
    if type(module) is nn.Tanh:
        return Activation(lambda x: np.tanh(x, out=x), lambda y: 1.0 - y * y)
    if type(module) is nn.ReLU:
        return Activation(lambda x: np.maximum(x, 0.0, out=x), lambda y: y > 0.0)
    if type(module) is nn.LeakyReLU and 0.0 <= module.negative_slope < 1.0:
        leak = np.float32(module.negative_slope)
        return Activation(lambda x: np.maximum(x, leak * x, out=x), lambda y: np.where(y > 0.0, np.float32(1), leak))
    if type(module) is nn.ELU and module.alpha > 0:
        alpha = np.float32(module.alpha)
        return Activation(
            lambda x: np.where(x > 0.0, x, alpha * np.expm1(np.minimum(x, 0.0))),
            lambda y: np.where(y > 0.0, np.float32(1), y + alpha),
        )
    return None


def layers_of(modules: Sequence[nn.Module], arrays_of: Callable[[th.Tensor], tuple[Any, Any]]) -> list[Layer] | None:
    """The counterpart of a chain of torch modules.

    :param modules: linear layers, each followed by one activation or none
    :param arrays_of: from a parameter to NumPy views of it and of its gradient
    :return: None where a module has no counterpart
    """
    layers: list[Layer] = []
    for module in modules:
        if type(module) is nn.Linear and module.bias is not None:
            (weight, weight_gradient), (bias, bias_gradient) = arrays_of(module.weight), arrays_of(module.bias)
            layers.append(Layer(weight, bias, weight_gradient, bias_gradient, None))
        elif layers and layers[-1].activation is None and (activation := activation_of(module)) is not None:
            layers[-1] = layers[-1]._replace(activation=activation)
        else:
            return None
    return layers


def forward(layers: Sequence[Layer], inputs: FloatArray) -> list[FloatArray]:
    """h_0 = x ;  h_{i+1} = f_i(h_i W_iᵀ + b_i).

    :param layers: the chain
    :param inputs: [B, in]
    :return: h_0 … h_n; the last is the output
    """
    outputs = [inputs]
    for layer in layers:
        hidden = np.dot(outputs[-1], layer.weight.T)
        hidden += layer.bias
        outputs.append(hidden if layer.activation is None else layer.activation.function(hidden))
    return outputs


def backward(layers: Sequence[Layer], outputs: Sequence[FloatArray], gradient: FloatArray) -> None:
    """Back-propagation: G ← G ⊙ f_i′ ;  ∂W_i = Gᵀ h_i ;  ∂b_i = Σ_B G ;  G ← G W_i, from the last layer to the first.

    Source: Rumelhart et al. 1986, "Learning representations by back-propagating errors".

    :param layers: the chain, whose gradient views are overwritten
    :param outputs: from ``forward``
    :param gradient: [B, out], ∂loss/∂(output of the chain)
    """
    ones = np.ones(len(gradient), dtype=np.float32)
    for index in reversed(range(len(layers))):
        layer = layers[index]
        if layer.activation is not None:
            gradient = gradient * layer.activation.slope(outputs[index + 1])
        np.dot(gradient.T, outputs[index], out=layer.weight_gradient)
        np.dot(ones, gradient, out=layer.bias_gradient)
        if index:
            gradient = np.dot(gradient, layer.weight)
