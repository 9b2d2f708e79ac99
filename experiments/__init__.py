import os

# Set before TensorFlow is imported, whose start-up messages would hide the experiment's own.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
