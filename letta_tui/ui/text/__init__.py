"""From text of any origin to lines a terminal can be given: sanitising, Markdown, highlighting, cells."""
