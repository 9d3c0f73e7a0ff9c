"""Interpreters and virtual environments that the commands need on this machine."""
