"""Sets that are made when they are asked for: surnames, dates, numbers in words, entities."""
