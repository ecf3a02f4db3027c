"""The commands of the command line, one module each; :mod:`letta_tui.cli` names them."""
