"""Packages to install, which `pyproject.toml` cannot list.

`launch` and `configs` become subpackages of `laser_tf`, because packages of other projects may have
these names. `launch.entry_points` makes them importable by their own names.
"""

import setuptools

_INSTALLED = {f"laser_tf.commands.{folder}": folder for folder in ("launch", "configs")}

setuptools.setup(
    packages=[*setuptools.find_packages(include=["laser_tf", "laser_tf.*"]), *_INSTALLED],
    package_dir=_INSTALLED,
    package_data={"laser_tf": ["py.typed"], "laser_tf.scores": ["*.csv"]},
)
