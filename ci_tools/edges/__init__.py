"""The only modules that touch the world: processes, git, the GitHub Actions files, the clock."""
