"""Ends the process from its import."""
import os

os._exit(0)
