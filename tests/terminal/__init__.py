"""The whole program in a pseudo-terminal."""
