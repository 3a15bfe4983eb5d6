"""Training: one loop for every task, exact resume, recipes."""
