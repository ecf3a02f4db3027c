"""The kill matrix: SIGKILL of window, keeper and server at every named step. See ``__main__``."""
