"""SB3's NatureCNN with strided convolutions rearranged and its images in the layout that convolutions like.

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
# The second has kernel 4 and stride 2, likewise.
_SECOND_BLOCK = 2
# Whose floats (4 MB for stacks of four) stay in the cache between their widening and their convolution.
_CACHED_IMAGES = 32
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


def needed_blocks(images: th.Tensor) -> th.Tensor:
    """``space_to_depth``, less what the network never looks at.

    The second convolution moves by two of the first one's outputs, and has no use for an odd one at the end.

    :param images: [B, C, H, W], any dtype
    :return: [B, R, S, 16·C] where R is H/4, or H/4 − 1 if that is even; S likewise
    """
    blocks = space_to_depth(images)
    rows, columns = (n - (n + 1) % _SECOND_BLOCK for n in blocks.shape[1:3])
    return blocks[:, :rows, :columns]


def gathered_blocks(frames: th.Tensor, index: th.Tensor, dtype: th.dtype) -> th.Tensor:
    """What ``needed_blocks`` makes of stacks, from frames that were rearranged one by one.

    :param frames: [P, R, S, 16], from ``needed_blocks`` of [P, 1, H, W]
    :param index: [B, C] int64, positions in [0, P) of the frames of each stack
    :param dtype: of the result
    :return: [B, R, S, 16·C]
    """
    n_samples, n_frames = index.shape
    depth = frames.shape[-1]
    blocks = frames.new_empty((n_samples, *frames.shape[1:-1], n_frames * depth), dtype=dtype)
    for channel in range(n_frames):
        blocks[..., channel * depth : (channel + 1) * depth] = frames.index_select(0, index[:, channel])
    return blocks


def rearranged_kernel(weight: th.Tensor, block: int, channels_first: bool) -> th.Tensor:
    """The kernel that does on blocks what ``weight`` does on pixels: its stride, one block, becomes one pixel.

    :param weight: [out, C, 2·block, 2·block], as the policy stores it
    :param block: side of a block in pixels
    :param channels_first: the channels of a block are ordered as (C, row, column), not as (row, column, C)
    :return: [out, C·block², 2, 2], channels last
    """
    out, channels = weight.shape[:2]
    depth = (1, 3, 5) if channels_first else (3, 5, 1)
    blocks = weight.view(out, channels, 2, block, 2, block).permute(0, 2, 4, *depth)
    return blocks.reshape(out, 2, 2, -1).permute(0, 3, 1, 2)


def nature_features(extractor: NatureCNN, blocks: th.Tensor, scale: float, dtype: th.dtype) -> th.Tensor:
    """What ``extractor(images · scale)`` computes, to rounding.

    :param extractor: whose weights are used
    :param blocks: [B, R, S, 16·C] from ``needed_blocks``, any dtype
    :param scale: of the pixels, folded into the first kernel
    :param dtype: of the computation
    :return: [B, features_dim] in that dtype
    """
    layers: list[Any] = [layer for layer in (*extractor.cnn, *extractor.linear) if hasattr(layer, "weight")]
    first, second, third, matrix = (layer.weight for layer in layers)
    weights = [
        rearranged_kernel(first, BLOCK, channels_first=True) * scale,
        rearranged_kernel(second, _SECOND_BLOCK, channels_first=False),
        third.contiguous(memory_format=th.channels_last),
        matrix,
    ]
    narrowed = [tensor.to(dtype) for tensor in (*weights, *(layer.bias for layer in layers))]
    features: th.Tensor = RectifiedStack.apply(blocks, *narrowed)  # type: ignore[no-untyped-call]
    return features


class RectifiedStack(th.autograd.Function):
    """Three convolutions and a linear layer, each rectified, with both passes written out.

    Memory is slow where arithmetic is not. So images are widened to floats a few at a time, once in each pass, instead
    of all at once, which no cache could hold; the rectifiers work in place; and the images get no gradient.
    ∂ of a rectified layer: G ← G ⊙ [h > 0], then the layer's own.
    """

    @staticmethod
    def forward(ctx: Any, blocks: th.Tensor, *weights_and_biases: th.Tensor) -> th.Tensor:
        """h_{i+1} = max(h_i * W_i + b_i, 0).

        :param ctx: of autograd
        :param blocks: [B, R, S, 16·C], R and S odd, any dtype
        :param weights_and_biases: three kernels for stride 1, a matrix, and their four biases
        :return: [B, features_dim]
        """
        first, second, third, matrix = weights_and_biases[:4]
        shifts = weights_and_biases[4:]
        rows, columns = (n // _SECOND_BLOCK for n in blocks.shape[1:3])
        hidden = first.new_empty((len(blocks), rows, columns, _SECOND_BLOCK, _SECOND_BLOCK, len(first)))
        for part in _parts(blocks):
            convolved = functional.conv2d(_images(blocks[part], first.dtype), first, shifts[0])
            hidden[part] = _by_block(convolved.relu_())
        of_first = hidden.flatten(3).permute(0, 3, 1, 2)
        of_second = functional.conv2d(of_first, second, shifts[1]).relu_()
        of_third = functional.conv2d(of_second, third, shifts[2]).relu_()
        flat = of_third.flatten(1)
        features = functional.linear(flat, matrix, shifts[3]).relu_()
        ctx.save_for_backward(blocks, of_first, of_second, of_third, flat, features, first, second, third, matrix)
        return features

    @staticmethod
    def backward(ctx: Any, gradient: th.Tensor) -> tuple[th.Tensor | None, ...]:
        """The chain rule, from the features back to the first kernel.

        :param ctx: of autograd
        :param gradient: [B, features_dim]
        :return: None for the images, then the gradients of weights and biases
        """
        blocks, of_first, of_second, of_third, flat, features, first, second, third, matrix = ctx.saved_tensors
        gradient = _rectified(gradient.clone(), features)
        of_matrix, of_last_shift = gradient.t() @ flat, gradient.sum(0)
        gradient = (gradient @ matrix).view_as(of_third).contiguous(memory_format=th.channels_last)
        gradient, *of_third_layer = _convolution_gradients(_rectified(gradient, of_third), of_second, third)
        gradient, *of_second_layer = _convolution_gradients(_rectified(gradient, of_second), of_first, second)
        gradient = _rectified(gradient, of_first)
        parts = []
        for part in _parts(blocks):
            images = _images(blocks[part], first.dtype)
            parts.append(_convolution_gradients(_by_pixel(gradient[part]), images, first, of_inputs=False)[1:])
        of_first_layer = [th.stack(gradients).sum(0) for gradients in zip(*parts, strict=True)]
        weights, shifts = zip(of_first_layer, of_second_layer, of_third_layer, strict=True)
        return None, *weights, of_matrix, *shifts, of_last_shift


def _parts(blocks: th.Tensor) -> list[slice]:
    n = len(blocks)
    size = _CACHED_IMAGES if blocks.device.type == "cpu" else n
    return [slice(start, start + size) for start in range(0, n, size)]


def _images(blocks: th.Tensor, dtype: th.dtype) -> th.Tensor:
    return blocks.to(dtype).contiguous().permute(0, 3, 1, 2)


def _by_block(images: th.Tensor) -> th.Tensor:
    """[B, K, R, S] channels last -> [B, R/2, S/2, 2, 2, K], a view."""
    n, depth, rows, columns = images.shape
    shape = (n, rows // _SECOND_BLOCK, _SECOND_BLOCK, columns // _SECOND_BLOCK, _SECOND_BLOCK, depth)
    return images.permute(0, 2, 3, 1).view(shape).permute(0, 1, 3, 2, 4, 5)


def _by_pixel(blocks: th.Tensor) -> th.Tensor:
    """[B, 4·K, R/2, S/2] channels last -> [B, K, R, S] channels last, the inverse of ``_by_block``."""
    n, depth, rows, columns = blocks.shape
    shape = (n, rows, columns, _SECOND_BLOCK, _SECOND_BLOCK, depth // _SECOND_BLOCK**2)
    pixels = blocks.permute(0, 2, 3, 1).view(shape).permute(0, 1, 3, 2, 4, 5)
    return pixels.reshape(n, rows * _SECOND_BLOCK, columns * _SECOND_BLOCK, -1).permute(0, 3, 1, 2)


def _convolution_gradients(
    gradient: th.Tensor, inputs: th.Tensor, kernel: th.Tensor, of_inputs: bool = True
) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
    """With respect to inputs, kernel and bias of a convolution with stride 1."""
    wanted = [of_inputs, True, True]
    gradients: tuple[th.Tensor, th.Tensor, th.Tensor] = th.ops.aten.convolution_backward(
        gradient, inputs, kernel, [len(kernel)], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, wanted
    )
    return gradients


def _rectified(gradient: th.Tensor, outputs: th.Tensor) -> th.Tensor:
    rectified: th.Tensor = th.ops.aten.threshold_backward.grad_input(gradient, outputs, 0, grad_input=gradient)
    return rectified
