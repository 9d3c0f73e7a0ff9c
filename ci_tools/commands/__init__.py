"""The command line families: arguments in, one call below, an exit code out."""
