"""SB3's NatureCNN with its first convolution rearranged and its images in the layout that convolutions like.

Owns the rearrangement, an exact permutation of the same weights; must not know policies, losses or optimizers.
"""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.torch_layers import NatureCNN
from torch import nn
from torch.nn import functional

# The first convolution has kernel 8 and stride 4: two blocks of four pixels, moved by one block.
BLOCK = 4
_STRIDES = (1, 2, 1)  # of the convolutions, the first one's on blocks
_LAYERS = [*[nn.Conv2d, nn.ReLU] * 3, nn.Flatten, nn.Linear, nn.ReLU]


def is_rearrangeable(extractor: nn.Module, image_shape: tuple[int, ...]) -> bool:
    """Tell whether the extractor is a NatureCNN over images that can be cut into whole blocks.

    :param extractor: features extractor of a policy
    :param image_shape: of its observations
    """
    if type(extractor) is not NatureCNN or len(image_shape) != 3 or any(n % BLOCK for n in image_shape[1:]):
        return False
    layers = [*extractor.cnn, *extractor.linear]
    convolutions = [layer for layer in layers if type(layer) is nn.Conv2d]
    return (
        [type(layer) for layer in layers] == _LAYERS
        and [(layer.kernel_size[0], layer.stride[0]) for layer in convolutions] == [(8, 4), (4, 2), (3, 1)]
        and all(layer.padding == (0, 0) and layer.bias is not None for layer in convolutions)
    )


def space_to_depth(images: th.Tensor) -> th.Tensor:
    """Turn every block of 4 × 4 pixels into 16 channels of one pixel.

    :param images: [B, C, H, W], any dtype
    :return: [B, H/4, W/4, 16·C], contiguous, channels ordered as (image channel, row in block, column in block)
    """
    n, channels, height, width = images.shape
    rows, columns = height // BLOCK, width // BLOCK
    if images.dtype == th.uint8:
        # Four bytes at a time: the pixels of one row of a block stay together.
        quads = images.reshape(n, -1).view(th.int32).view(n, channels, rows, BLOCK, columns)
        return quads.permute(0, 2, 4, 1, 3).contiguous().view(th.uint8).view(n, rows, columns, -1)
    blocks = images.reshape(n, channels, rows, BLOCK, columns, BLOCK)
    return blocks.permute(0, 2, 4, 1, 3, 5).reshape(n, rows, columns, channels * BLOCK * BLOCK)


def gathered_blocks(frames: th.Tensor, index: th.Tensor, dtype: th.dtype) -> th.Tensor:
    """What ``space_to_depth`` makes of stacks, from frames that were rearranged one by one.

    :param frames: [P, H/4, W/4, 16], from ``space_to_depth`` of [P, 1, H, W]
    :param index: [B, C] int64, positions in [0, P) of the frames of each stack
    :param dtype: of the result
    :return: [B, H/4, W/4, 16·C]
    """
    n_samples, n_frames = index.shape
    depth = frames.shape[-1]
    blocks = frames.new_empty((n_samples, *frames.shape[1:-1], n_frames * depth), dtype=dtype)
    for channel in range(n_frames):
        blocks[..., channel * depth : (channel + 1) * depth] = frames.index_select(0, index[:, channel])
    return blocks


def rearranged_kernel(weight: th.Tensor) -> th.Tensor:
    """The kernel that does on blocks what ``weight`` does on pixels: stride 4 becomes stride 1.

    :param weight: [out, C, 8, 8], as the policy stores it
    :return: [out, 16·C, 2, 2]
    """
    out, channels = weight.shape[:2]
    blocks = weight.view(out, channels, 2, BLOCK, 2, BLOCK)
    return blocks.permute(0, 1, 3, 5, 2, 4).reshape(out, channels * BLOCK * BLOCK, 2, 2)


def nature_features(extractor: NatureCNN, blocks: th.Tensor, scale: float, dtype: th.dtype) -> th.Tensor:
    """What ``extractor(images · scale)`` computes, to rounding.

    :param extractor: whose weights are used
    :param blocks: [B, H/4, W/4, 16·C] from ``space_to_depth``, any dtype
    :param scale: of the pixels, folded into the first kernel
    :param dtype: of the computation
    :return: [B, features_dim] in that dtype
    """
    layers: list[Any] = [*extractor.cnn, *extractor.linear]
    first, *others = (layer for layer in layers if hasattr(layer, "weight"))
    weights = [rearranged_kernel(first.weight) * scale, *(layer.weight for layer in others)]
    weights = [
        weight.to(dtype, memory_format=th.channels_last if weight.dim() == 4 else th.preserve_format)
        for weight in weights
    ]
    biases = [layer.bias.to(dtype) for layer in (first, *others)]
    features: th.Tensor = RectifiedStack.apply(blocks.to(dtype).permute(0, 3, 1, 2), *weights, *biases)  # type: ignore[no-untyped-call]
    return features


class RectifiedStack(th.autograd.Function):
    """Three convolutions of strides 1, 2, 1 and a linear layer, each rectified, with both passes written out.

    The rectifiers work in place, forward and backward, and the images get no gradient: what is saved is memory, whose
    traffic costs as much as arithmetic here. ∂ of a rectified layer: G ← G ⊙ [h > 0], then the layer's own.
    """

    @staticmethod
    def forward(ctx: Any, images: th.Tensor, *weights_and_biases: th.Tensor) -> th.Tensor:
        """h_{i+1} = max(h_i * W_i + b_i, 0).

        :param ctx: of autograd
        :param images: [B, C, H, W], channels last
        :param weights_and_biases: three kernels, a matrix, and their four biases
        :return: [B, features_dim]
        """
        *kernels, matrix = weights_and_biases[:4]
        *shifts, last_shift = weights_and_biases[4:]
        hidden = [images]
        for kernel, shift, stride in zip(kernels, shifts, _STRIDES, strict=True):
            hidden.append(functional.conv2d(hidden[-1], kernel, shift, stride=stride).relu_())
        flat = hidden[-1].flatten(1)
        features = functional.linear(flat, matrix, last_shift).relu_()
        ctx.save_for_backward(*hidden, flat, features, *kernels, matrix)
        return features

    @staticmethod
    def backward(ctx: Any, gradient: th.Tensor) -> tuple[th.Tensor | None, ...]:
        """The chain rule, from the features back to the first kernel.

        :param ctx: of autograd
        :param gradient: [B, features_dim]
        :return: None for the images, then the gradients of weights and biases
        """
        *hidden, flat, features, first, second, third, matrix = ctx.saved_tensors
        gradient = _rectified(gradient.clone(), features)
        weight_gradients, bias_gradients = [gradient.t() @ flat], [gradient.sum(0)]
        gradient = (gradient @ matrix).view_as(hidden[-1])
        for index, kernel in ((3, third), (2, second), (1, first)):
            gradient = _rectified(gradient.contiguous(memory_format=th.channels_last), hidden[index])
            stride = [_STRIDES[index - 1]] * 2
            wanted = [index > 1, True, True]
            gradient, weight_gradient, bias_gradient = th.ops.aten.convolution_backward(
                gradient, hidden[index - 1], kernel, [len(kernel)], stride, [0, 0], [1, 1], False, [0, 0], 1, wanted
            )
            weight_gradients.insert(0, weight_gradient)
            bias_gradients.insert(0, bias_gradient)
        return None, *weight_gradients, *bias_gradients


def _rectified(gradient: th.Tensor, outputs: th.Tensor) -> th.Tensor:
    rectified: th.Tensor = th.ops.aten.threshold_backward.grad_input(gradient, outputs, 0, grad_input=gradient)
    return rectified
