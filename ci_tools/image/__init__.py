"""The pinned image: its lock file, its inputs, the engines that build and run it."""
