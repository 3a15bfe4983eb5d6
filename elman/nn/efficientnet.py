"""EfficientNet-Lite0: a convolutional network whose view of a photograph is what other networks read."""

from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu6
from torch.nn.utils.fusion import fuse_conv_bn_eval

BLOCKS = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip
"""How many in a row, kernel, stride of the first, by what a block widens inside, channels that come out."""
STEM, HEAD, CLASSES = 32, 1280, 1000
NORMS = {"conv_stem": "bn0", "conv_head": "bn1", "expand_conv": "bn0", "depthwise_conv": "bn1", "project_conv": "bn2"}
"""The normalisation that follows each convolution."""
EPSILON = 1e-3  # of the batch normalisation, as the weights were trained with


class SameConv(nn.Conv2d):
    """A convolution that pads as TensorFlow's "same" does: an image of n pixels becomes one of ceil(n / stride)."""

    def forward(self, x: Tensor) -> Tensor:
        amounts: list[int] = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            missing = max(0, (-(-size // stride) - 1) * stride + kernel - size)
            amounts += [missing // 2, missing - missing // 2]  # what is odd goes right and below
        return super().forward(pad(x, amounts) if any(amounts) else x)


def _conv(channels: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> SameConv:
    return SameConv(channels, out, kernel, stride, groups=groups, bias=False)


class InvertedResidual(nn.Module):
    """Mobile inverted bottleneck (Sandler et al. 2018): widen by 1 x 1, filter each channel alone, narrow again."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, widen: int) -> None:
        super().__init__()
        inside = channels * widen
        if widen > 1:
            self.expand_conv, self.bn0 = _conv(channels, inside), nn.BatchNorm2d(inside, EPSILON)
        self.depthwise_conv = _conv(inside, inside, kernel, stride, groups=inside)
        self.bn1 = nn.BatchNorm2d(inside, EPSILON)
        self.project_conv, self.bn2 = _conv(inside, out), nn.BatchNorm2d(out, EPSILON)
        self.widens, self.adds = widen > 1, stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        inside = relu6(self.bn0(self.expand_conv(x))) if self.widens else x
        inside = relu6(self.bn1(self.depthwise_conv(inside)))
        out = cast(Tensor, self.bn2(self.project_conv(inside)))
        return x + out if self.adds else out


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 (Tan and Le 2019; the Lite variant of 2020 has ReLU6 and no squeeze-and-excitation).

    It reads pixels from 0 to 255, B x 3 x size x size, and normalises them itself.

    >>> EfficientNetLite0().eval().features(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280, 2, 2])
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem, self.bn0 = _conv(3, STEM, 3, 2), nn.BatchNorm2d(STEM, EPSILON)
        blocks, channels = [], STEM
        for count, kernel, stride, widen, out in BLOCKS:
            for number in range(count):
                blocks.append(InvertedResidual(channels, out, kernel, 1 if number else stride, widen))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.conv_head, self.bn1 = _conv(channels, HEAD), nn.BatchNorm2d(HEAD, EPSILON)
        self.fc = nn.Linear(HEAD, CLASSES)

    def features(self, pixels: Tensor) -> Tensor:
        """What stands at each place of the image: B x 1280 x size/32 x size/32."""
        x = relu6(self.bn0(self.conv_stem((pixels - 127) / 128)))
        return relu6(self.bn1(self.conv_head(self.blocks(x))))

    def forward(self, pixels: Tensor) -> Tensor:
        """A score for each of the 1,000 classes of ImageNet (B x 1000)."""
        return cast(Tensor, self.fc(self.features(pixels).mean((2, 3))))

    @classmethod
    def load(cls, path: Path) -> "EfficientNetLite0":
        """The network with the weights of a file, ready to be asked; nothing but tensors is read from it."""
        network = cls()
        weights = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict({name.replace("._", ".").removeprefix("_"): value for name, value in weights.items()})
        network.eval().requires_grad_(False)._fused()
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

    def _fused(self) -> None:
        """Every normalisation as part of the convolution before it, which is the same function in half the time."""
        for part in list(self.modules()):
            for convolution, norm in NORMS.items():
                if isinstance(part, EfficientNetLite0 | InvertedResidual) and hasattr(part, convolution):
                    fused = fuse_conv_bn_eval(getattr(part, convolution), getattr(part, norm))
                    setattr(part, convolution, fused)
                    setattr(part, norm, nn.Identity())
