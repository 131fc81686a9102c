"""Ask the questions of an audit and gather the answers."""
