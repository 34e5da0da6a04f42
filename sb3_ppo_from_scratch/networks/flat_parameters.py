"""All parameters of a policy in one contiguous vector, and one Adam step over it.

Owns memory and the optimizer's arithmetic; must not know what the parameters mean or how gradients come about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch as th

from sb3_ppo_from_scratch.core.arrays import Array


class FlatParameters:
    """One vector that the parameters are views of, and one that their gradients are views of.

    Names, shapes and strides of the parameters stay what they were; only their memory moves.

    :param parameters: to gather, all of one dtype and device
    :ivar values: [N], the parameters one after the other
    :ivar gradients: [N], their gradients in the same order
    """

    def __init__(self, parameters: Sequence[th.nn.Parameter]) -> None:
        self._parameters = list(parameters)
        values = th.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        if values.device.type == "cpu":
            # NumPy's memory outlives a move of the tensor to shared memory: views stay valid until ``bind``.
            self._memory = values.numpy().copy(), np.zeros(len(values), dtype=np.float32)
            self.values, self.gradients = map(th.from_numpy, self._memory)
        else:
            self.values, self.gradients = values, th.zeros_like(values)
        self._views = list(zip(self._parameters, self.split(self.values), self.split(self.gradients), strict=True))
        self.bind()

    def split(self, flat: th.Tensor) -> list[th.Tensor]:
        """Cut a vector into views with the shapes of the parameters.

        :param flat: [N]
        :return: one view per parameter, in order
        """
        sizes = [parameter.numel() for parameter in self._parameters]
        pieces = zip(th.split(flat, sizes), self._parameters, strict=True)
        return [piece.view(parameter.shape) for piece, parameter in pieces]

    def bind(self) -> None:
        """Make every parameter a view again, keeping its present value, if something gave it memory of its own."""
        for parameter, value, gradient in self._views:
            if parameter.data_ptr() != value.data_ptr():
                value.copy_(parameter.detach())
                parameter.data = value
            parameter.grad = gradient.detach()  # a view of its own, which a move of the policy may point elsewhere

    def clip_gradients(self, max_grad_norm: float) -> Array:
        """Scale the gradients so that their joint L2 norm is at most ``max_grad_norm``.

        Source: Pascanu et al. 2013 (arXiv:1211.5063), algorithm 1. Matches ``torch.nn.utils.clip_grad_norm_``.

        :param max_grad_norm: > 0
        :return: the norm that they had, a scalar on their device
        """
        if self.gradients.device.type != "cpu":
            norm = th.linalg.vector_norm(self.gradients)
            self.gradients.mul_((max_grad_norm / (norm + 1e-6)).clamp(max=1.0))  # the host need not wait for it
            return norm
        gradients = self.gradients.numpy()
        grad_norm = math.sqrt(np.dot(gradients, gradients))
        factor = max_grad_norm / (grad_norm + 1e-6)
        if factor < 1.0:
            gradients *= np.float32(factor)
        return grad_norm


# What torch's Adam can be asked for beside the algorithm of the paper; then it steps by itself.
_OPTIONS = ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay")


class FlatAdam:
    """Steps flat parameters as ``torch.optim.Adam`` would, on the moments inside that optimizer's own state.

    Any other optimizer class steps its parameters itself, one by one.

    :param optimizer: of the policy, with one parameter group that holds exactly the flat parameters
    :param flat: the parameters
    """

    def __init__(self, optimizer: th.optim.Optimizer, flat: FlatParameters) -> None:
        self._optimizer = optimizer
        self._flat = flat
        self._first_moment = th.zeros_like(flat.values)
        self._second_moment = th.zeros_like(flat.values)
        moments = flat.split(self._first_moment), flat.split(self._second_moment)
        self._moments = list(zip(*moments, strict=True))
        self._step = th.zeros((), device=flat.values.device)
        self._is_adam = type(optimizer) is th.optim.Adam and not any(
            optimizer.param_groups[0].get(option, False) for option in _OPTIONS
        )

    def bind(self) -> None:
        """Take over the optimizer's moments, which loading a checkpoint may have replaced."""
        if not self._is_adam:
            return
        for parameter, (first, second) in zip(self._optimizer.param_groups[0]["params"], self._moments, strict=True):
            state = self._optimizer.state[parameter]
            if not state:
                state["step"] = th.tensor(0.0)
                first.zero_()
                second.zero_()
            elif state["exp_avg"].data_ptr() != first.data_ptr():
                first.copy_(state["exp_avg"])
                second.copy_(state["exp_avg_sq"])
            state["exp_avg"], state["exp_avg_sq"] = first, second
        self._step = state["step"].detach().to(self._flat.values.device, copy=True)

    def publish(self) -> None:
        """Tell the optimizer how many steps were taken; each of its parameters counts for itself."""
        if self._is_adam:
            n_steps = self._step.cpu()
            for state in self._optimizer.state.values():
                state["step"].copy_(n_steps)

    def step(self) -> None:
        """One step along the present gradients.

        Source: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1. Matches ``torch.optim.Adam`` to rounding.
        """
        if not self._is_adam:
            self._optimizer.step()
            return
        group = self._optimizer.param_groups[0]
        self._step += 1
        # The kernel behind torch.optim.adam.adam(fused=True), whose way there takes seven times as long as the kernel.
        th._fused_adam_(
            [self._flat.values],
            [self._flat.gradients],
            [self._first_moment],
            [self._second_moment],
            [],
            [self._step],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )
