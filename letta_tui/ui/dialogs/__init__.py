"""Screens that are opened over the conversation."""
