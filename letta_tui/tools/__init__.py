"""Tools of the person's own: declared in the config file, offered to the server, run on this machine."""
