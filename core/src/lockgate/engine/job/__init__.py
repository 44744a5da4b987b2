"""A job from its setup to its end, as its own driver goes through it, whatever its protocol."""
