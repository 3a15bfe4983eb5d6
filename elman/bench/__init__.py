"""Measurements against peers in the same run, each beside the machine's own limit.

from elman.bench import layers
report = layers.run(["gru"], quick=True)
print(report.means(), report.peak)
"""
