"""The seam between the view and the worker: plain, immutable, serialisable data in both directions.

The view (``letta_tui.ui``) sends :mod:`letta_tui.seam.intents` and receives
:mod:`letta_tui.seam.updates`, whose values are the types of :mod:`letta_tui.seam.state`.
Nothing here does I/O, knows the wire protocol or the ledger's schema.
"""
