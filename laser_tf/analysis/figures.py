"""All figures by name."""

from laser_tf.analysis import (
    figure,
    figures_acer,
    figures_agents,
    figures_atari,
    figures_laser,
    figures_r2d2,
    figures_reactor,
    figures_sharing,
)

DRAWN: dict[str, figure.Figure] = (  # by `launch.draw_figure`; LASER's are a sweep's report
    figures_r2d2.FIGURES
    | figures_acer.FIGURES
    | figures_reactor.FIGURES
    | figures_agents.FIGURES
    | figures_sharing.FIGURES
    | figures_atari.FIGURES
)
ALL: dict[str, figure.Figure] = figures_laser.FIGURES | DRAWN
# What refuses a configuration whose runs a figure cannot compare: see their docstrings.
CHECKS = {
    name: module.check
    for module in (
        figures_laser,
        figures_r2d2,
        figures_acer,
        figures_reactor,
        figures_sharing,
        figures_atari,
    )
    for name in module.FIGURES
}
