"""The send ledger: what a person submitted and everything that was learnt about it, on disk.

``values`` are its rows, ``transitions`` the one table of legal moves, ``store.Ledger`` the file.
"""
