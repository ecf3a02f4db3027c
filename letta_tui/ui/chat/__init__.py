"""The conversation screen and its parts."""
