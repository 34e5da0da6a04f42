"""Claims about the rearranged NatureCNN: an exact permutation of the same weights, and where it may be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor, NatureCNN
from torch.nn import functional

from sb3_ppo_from_scratch.networks.nature_cnn import (
    is_rearrangeable,
    nature_features,
    needed_blocks,
    rearranged_kernel,
    space_to_depth,
)
from tests.unit.networks.policies import assert_close

SHAPES = [(1, 36, 36), (4, 84, 84), (3, 40, 48)]
every_shape = pytest.mark.parametrize("shape", SHAPES)


def whole_numbers(*shape: int, high: int = 8) -> th.Tensor:
    """Small whole numbers in double precision, whose sums of products are exact in any order."""
    generator = np.random.default_rng(sum(shape))
    return th.from_numpy(generator.integers(-high, high + 1, shape).astype(np.float64))


def extractor(shape: tuple[int, ...]) -> NatureCNN:
    with th.random.fork_rng():
        th.manual_seed(0)
        return NatureCNN(spaces.Box(0, 255, shape, np.uint8), features_dim=16)


@every_shape
def test_the_rearranged_convolution_is_the_same_to_the_last_bit(shape: tuple[int, ...]) -> None:
    images, weight = whole_numbers(2, *shape), whole_numbers(5, shape[0], 8, 8)
    expected = functional.conv2d(images, weight, stride=4)
    blocks = space_to_depth(images).permute(0, 3, 1, 2)
    actual = functional.conv2d(blocks, rearranged_kernel(weight, 4, channels_first=True))
    assert actual.shape == expected.shape
    assert th.equal(actual, expected)


@every_shape
def test_the_gradient_of_the_rearranged_kernel_arrives_at_its_own_place(shape: tuple[int, ...]) -> None:
    images = whole_numbers(2, *shape)
    weights = [whole_numbers(5, shape[0], 8, 8).requires_grad_() for _ in range(2)]
    stock = functional.conv2d(images, weights[0], stride=4)
    ours = functional.conv2d(
        space_to_depth(images).permute(0, 3, 1, 2), rearranged_kernel(weights[1], 4, channels_first=True)
    )
    slope = whole_numbers(*stock.shape)
    expected, actual = th.autograd.grad(stock, weights[0], slope)[0], th.autograd.grad(ours, weights[1], slope)[0]
    assert th.equal(actual, expected)


@pytest.mark.parametrize("dtype", [th.uint8, th.float32])
def test_every_pixel_is_moved_once_and_keeps_its_value_and_type(dtype: th.dtype) -> None:
    images = (th.arange(2 * 3 * 8 * 12) % 251).reshape(2, 3, 8, 12).to(dtype)
    blocks = space_to_depth(images)
    assert blocks.shape == (2, 2, 3, 48)
    assert blocks.dtype == dtype
    assert blocks.is_contiguous()
    for channel, row, column in [(0, 0, 0), (2, 5, 7), (1, 7, 11), (2, 3, 8)]:
        depth = 16 * channel + 4 * (row % 4) + column % 4
        assert th.equal(blocks[:, row // 4, column // 4, depth], images[:, channel, row, column])


@every_shape
@pytest.mark.parametrize("scale", [1 / 255, 1.0])
@pytest.mark.parametrize("n_images", [3, 70])  # 70 take three parts, the last one ragged
def test_features_and_gradients_are_those_of_the_extractor(shape: tuple[int, ...], scale: float, n_images: int) -> None:
    stock = extractor(shape).double()
    images = th.from_numpy(np.random.default_rng(1).integers(0, 256, (n_images, *shape), np.uint8))
    expected = stock(images.double() * scale)
    expected_gradients = th.autograd.grad(expected.square().sum(), list(stock.parameters()))
    actual = nature_features(stock, needed_blocks(images), scale, th.float64)
    gradients = th.autograd.grad(actual.square().sum(), list(stock.parameters()))
    assert_close(actual, expected, 1e-12)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        assert_close(ours, theirs, 1e-11)


class OwnCNN(NatureCNN):
    """A subclass may compute anything."""


@pytest.mark.parametrize(
    "module, shape, expected",
    [
        (extractor((1, 36, 36)), (1, 36, 36), True),
        (extractor((4, 84, 84)), (4, 84, 84), True),
        (extractor((1, 38, 36)), (1, 38, 36), False),
        (extractor((1, 36, 38)), (1, 36, 38), False),
        (OwnCNN(spaces.Box(0, 255, (1, 36, 36), np.uint8)), (1, 36, 36), False),
        (FlattenExtractor(spaces.Box(0, 255, (1, 36, 36), np.uint8)), (1, 36, 36), False),
    ],
)
def test_only_natures_own_network_over_whole_blocks_is_rearranged(
    module: Any, shape: tuple[int, ...], expected: bool
) -> None:
    assert is_rearrangeable(module, shape) == expected


def test_a_network_whose_layers_were_exchanged_is_not_rearranged() -> None:
    """Its class still says NatureCNN, its layers no longer do."""
    changed = extractor((1, 36, 36))
    changed.cnn[1] = th.nn.ELU()
    assert not is_rearrangeable(changed, (1, 36, 36))
