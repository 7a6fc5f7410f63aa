"""Keeps TensorBoard out of Stable-Baselines3; import this module before it.

Stable-Baselines3 imports TensorBoard where it is installed, and TensorBoard imports TensorFlow.
Builds of PyTorch for CUDA and TensorFlow abort in one process, since both register LLVM's options.
"""

import sys

#: An import of it raises ImportError now, which Stable-Baselines3 is prepared for.
sys.modules["torch.utils.tensorboard"] = None  # type: ignore[assignment]
