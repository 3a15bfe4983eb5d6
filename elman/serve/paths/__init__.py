"""The paths of the service, some that belong together in each file."""
