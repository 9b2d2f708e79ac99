import os

# Runs before any launch script imports TensorFlow: its start-up chatter would bury our own lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
