"""The keeper: a small headless process that keeps a server and its conversations alive.

It starts the embedded ``letta server``, outlives every window, stays subscribed to the conversations in
use and writes down how turns ended. It decides nothing and sends no input.
"""
