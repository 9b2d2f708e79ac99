import os
import signal
import sys

# Runs before any launch script imports TensorFlow: its start-up chatter would bury our own lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# As `interruption.before_imports`, but from the moment that `python -m` looks for a command here.
if sys.argv[:1] == ["-m"]:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from laser_tf.host import quick_import

quick_import.install()
