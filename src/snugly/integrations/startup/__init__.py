"""The folder that `snugly run --gpu-memory` puts before PYTHONPATH; see `gpu_limit`."""
