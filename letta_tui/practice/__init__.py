"""A scripted model on loopback: the one behind ``letta-tui demo`` and behind the tests."""
