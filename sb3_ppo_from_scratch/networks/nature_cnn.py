"""SB3's NatureCNN with its first convolution rearranged and its images in the layout that convolutions like.

Owns the rearrangement, an exact permutation of the same weights; must not know policies, losses or optimizers.
"""

from __future__ import annotations

import torch as th
from stable_baselines3.common.torch_layers import NatureCNN
from torch import nn
from torch.nn import functional

# The first convolution has kernel 8 and stride 4: two blocks of four pixels, moved by one block.
BLOCK = 4
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
    blocks = images.view(n, channels, height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    return blocks.permute(0, 2, 4, 1, 3, 5).reshape(n, height // BLOCK, width // BLOCK, channels * BLOCK * BLOCK)


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
    first, second, third = (layer for layer in extractor.cnn if isinstance(layer, nn.Conv2d))
    linear = extractor.linear[0]
    assert first.bias is not None
    assert isinstance(linear, nn.Linear)
    hidden = blocks.to(dtype).permute(0, 3, 1, 2)  # channels last in memory
    kernel = (rearranged_kernel(first.weight) * scale).to(dtype, memory_format=th.channels_last)
    hidden = functional.relu(functional.conv2d(hidden, kernel, first.bias.to(dtype)))
    for layer in (second, third):
        assert layer.bias is not None
        kernel = layer.weight.to(dtype, memory_format=th.channels_last)
        hidden = functional.relu(functional.conv2d(hidden, kernel, layer.bias.to(dtype), stride=layer.stride))
    return functional.relu(functional.linear(hidden.flatten(1), linear.weight.to(dtype), linear.bias.to(dtype)))
