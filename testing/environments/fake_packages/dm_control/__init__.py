"""Stands in for the package dm_control."""
