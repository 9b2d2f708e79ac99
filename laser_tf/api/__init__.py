import os

# Before any module here imports TensorFlow: its start-up messages would bury our own lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
