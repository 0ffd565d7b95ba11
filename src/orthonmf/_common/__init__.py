"""What all the rest stands on: types, checks, files, numbers."""
