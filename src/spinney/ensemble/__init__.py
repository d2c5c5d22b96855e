"""Many trees: which rows each one sees, how they grow side by side, and how they add up."""
