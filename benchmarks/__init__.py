"""Ours against scikit-learn: ratios measured in one run. `python -m benchmarks --help`."""
