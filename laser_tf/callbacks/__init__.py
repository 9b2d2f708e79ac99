"""Callbacks that are ready to use, and their base class."""

from laser_tf.callbacks.keep_best import KeepBest
from laser_tf.callbacks.live_tracking import MlflowCallback, WandbCallback
from laser_tf.callbacks.stopping import StopAfter, StopAtReturn
from laser_tf.training.callbacks import Callback, Evaluation, Run

__all__ = [
    "Callback",
    "Evaluation",
    "KeepBest",
    "MlflowCallback",
    "Run",
    "StopAfter",
    "StopAtReturn",
    "WandbCallback",
]
