"""Share groups: their members, what is delivered to them, and the coordinators that keep their state."""
