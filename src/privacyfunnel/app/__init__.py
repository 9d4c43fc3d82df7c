"""`pfunnel app`: a page on this machine on which somebody looks at a table, chooses, checks and takes."""

from .server import make_app, serve

__all__ = ["make_app", "serve"]
