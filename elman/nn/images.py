"""From what is kept of an image to a memory of places that a decoder or a question attends to."""

from itertools import pairwise
from math import isqrt

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

STEPS = 3  # convolutions that each halve the sides of an image
GROUPS = 8  # of channels, which are normalised together


class ImageEncoder(nn.Module):
    """From the features of images, B x P x C, to a memory of B x `places` x `output_size`."""

    def __init__(self, places: int, output_size: int) -> None:
        super().__init__()
        self.places, self.output_size = places, output_size


class ProjectedPlaces(ImageEncoder):
    """One linear function of every place, for features that were made before: m_p = ReLU(W f_p + b).

    >>> ProjectedPlaces(49, 1280, 64)(torch.zeros(2, 49, 1280)).shape
    torch.Size([2, 49, 64])
    """

    def __init__(self, places: int, channels: int, output_size: int, *, dropout: float = 0.0) -> None:
        super().__init__(places, output_size)
        self.projection, self.dropout = nn.Linear(channels, output_size), dropout

    def forward(self, features: Tensor) -> Tensor:
        features = dropout(features, self.dropout, self.training)  # B x P x C
        return relu(self.projection(features))  # B x P x M


def grid_of(places: int) -> tuple[int, int]:
    """Rows and columns in which places lie over an image: a square, or where they make none, one row.

    >>> grid_of(49), grid_of(5)
    ((7, 7), (1, 5))
    """
    side = isqrt(places)
    return (side, side) if side * side == places else (1, places)


def where(places: int) -> Tensor:
    """Where places stand in an image, across and down, from -1 to 1 (P x 2).

    >>> where(4).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    rows, columns = grid_of(places)
    across = torch.linspace(-1, 1, columns)
    down = across if rows == columns else torch.zeros(1)  # one row stands in the middle
    return torch.cartesian_prod(down, across).flip(1)


class ConvolutionalEncoder(ImageEncoder):
    """A small convolutional network over pixels, trained with what reads it: each step halves an image's sides.

    A step is a convolution of 3 x 3 with stride 2, normalised by groups of channels (Wu and He 2018), and ReLU; to
    what the last gives, one more convolution is added. Every pixel is told where it stands (Liu et al. 2018), since a
    convolution alone cannot tell left from right.

    >>> encoder = ConvolutionalEncoder(48 * 48, 64)
    >>> encoder(torch.zeros(2, 48 * 48, 3)).shape, encoder.places
    (torch.Size([2, 36, 64]), 36)
    """

    where: Tensor

    def __init__(self, pixels: int, output_size: int, *, dropout: float = 0.0) -> None:
        side, width = grid_of(pixels)
        if side != width:
            raise ValueError(f"{pixels:,} places are not the pixels of a square image")
        sides = [-(-side // 2 ** (step + 1)) for step in range(STEPS)]  # halved and rounded up
        super().__init__(sides[-1] ** 2, output_size)
        self.side, self.dropout = side, dropout
        self.register_buffer("where", where(pixels).T.reshape(2, side, side), persistent=False)
        widths = [5, *(max(GROUPS, output_size >> (STEPS - 1 - step)) for step in range(STEPS - 1)), output_size]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths))
        self.last = nn.Conv2d(output_size, output_size, 3, padding=1)
        normalised = zip((*widths[1:], output_size), (*sides, sides[-1]), strict=True)
        self.norms = nn.ModuleList(nn.GroupNorm(_groups(width, side), width) for width, side in normalised)

    def forward(self, pixels: Tensor) -> Tensor:
        image = pixels.view(len(pixels), self.side, self.side, 3).permute(0, 3, 1, 2)  # B x 3 x side x side
        x = torch.cat([2 * image - 1, self.where.expand(len(image), -1, -1, -1)], dim=1)
        for convolution, norm in zip(self.convolutions, self.norms, strict=False):
            x = relu(norm(convolution(x)))
        x = x + relu(self.norms[-1](self.last(x)))
        x = x.flatten(2).transpose(1, 2)  # B x P x M
        return dropout(x, self.dropout, self.training)


def _groups(width: int, side: int) -> int:
    """Groups of channels; of two at least at a single place, where one alone leaves nothing to normalise."""
    most = width if side > 1 else max(1, width // 2)
    return next(groups for groups in range(min(GROUPS, most), 0, -1) if width % groups == 0)


def image_encoder(
    places: int, channels: int, output_size: int, *, pixels: bool, dropout: float = 0.0
) -> ProjectedPlaces | ConvolutionalEncoder:
    """What reads the features of a set: a convolutional network where they are pixels, else a linear function."""
    if pixels:
        return ConvolutionalEncoder(places, output_size, dropout=dropout)
    return ProjectedPlaces(places, channels, output_size, dropout=dropout)
