"""What every driver shares: random numbers, criteria, ties and thresholds, the branch rule, the queue."""
