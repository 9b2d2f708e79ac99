"""Stands in for the package dm_control, found by `fake_control.installed`, in workers, too."""
