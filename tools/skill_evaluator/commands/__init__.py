"""The commands, grouped in modules: options, examples, exit codes, and the function that runs and shows each."""
