"""The layers of a network from the lowest to the topmost, for training that treats them differently."""

from torch import nn

from elman.nn.features import CharacterEncoder, WordFeatures
from elman.nn.recurrent import Recurrent

LOWEST = (nn.Embedding, CharacterEncoder, WordFeatures)
"""What turns tokens into vectors, with all that is inside it."""


def layer_groups(network: nn.Module) -> list[list[nn.Parameter]]:
    """The parameters that learn: those of embeddings, then of each recurrent layer, then of all that stands on top.

    Stacks that stand side by side, as two towers or an encoder and a decoder, are counted from their topmost layers. A
    matrix that two parts share belongs to the lower one.

    >>> from elman.nn.recurrent import Recurrent
    >>> network = nn.ModuleList([nn.Embedding(5, 3), Recurrent("gru", 3, 4, num_layers=2), nn.Linear(4, 2)])
    >>> [sum(parameter.numel() for parameter in group) for group in layer_groups(network)]
    [15, 108, 120, 10]
    """
    depths: dict[nn.Parameter, int] = {}  # from the top: 0 is what stands on the layers
    embeddings: list[nn.Parameter] = []
    inside: set[nn.Module] = set()
    for module in network.modules():
        if module in inside:
            continue
        if isinstance(module, LOWEST):
            inside.update(module.modules())
            embeddings.extend(module.parameters())
        elif isinstance(module, Recurrent):
            for depth, layer in enumerate(reversed(module.layers), start=1):
                depths |= dict.fromkeys(layer.parameters(), depth)
    lowest = max(depths.values(), default=0) + 1
    depths |= dict.fromkeys(embeddings, lowest)
    groups: list[list[nn.Parameter]] = [[] for _ in range(lowest + 1)]
    for parameter in network.parameters():
        if parameter.requires_grad:
            groups[lowest - depths.get(parameter, 0)].append(parameter)
    return [group for group in groups if group]
