"""One file a subcommand: the only place where the stages meet."""
