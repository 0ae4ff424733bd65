"""The faults themselves, by the place where they are planted."""
