"""What pyproject.toml cannot say: where packages are installed.

`launch` and `configs` go inside of laser_tf: at the top of site-packages, names so common would
meet those of other packages. `launch.entry_points` makes them known under their names again.
"""

import setuptools

_INSTALLED = {f"laser_tf.commands.{folder}": folder for folder in ("launch", "configs")}

setuptools.setup(
    packages=[*setuptools.find_packages(include=["laser_tf", "laser_tf.*"]), *_INSTALLED],
    package_dir=_INSTALLED,
    package_data={"laser_tf": ["py.typed"], "laser_tf.scores": ["*.csv"]},
)
