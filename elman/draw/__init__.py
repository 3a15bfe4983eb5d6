"""Drawing plain data: on a page of its own, as a picture, in a terminal. Knows panels, nothing of models."""
