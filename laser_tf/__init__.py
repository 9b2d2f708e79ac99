import os

# Before any module here imports TensorFlow, which by itself asks oneDNN on processors with AVX-512
# VNNI and newer only: without it an update on Atari takes twice the processor time (AVX2).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
