"""The search: annealing, refinement and the way from items to a partition."""
